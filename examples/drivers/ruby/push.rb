# Push an array past 16 MB with Ruby's driver (gem mongo). Usage: ruby push.rb URI. Tests do not run it.

require 'digest'
require 'mongo'

ELEMENTS = 44
PAYLOAD = 1_000_000

def element(number)
  { 'n' => number, 'payload' => ('a'.ord + (number % 26)).chr * PAYLOAD }
end

def digest(elements)
  sha = Digest::SHA256.new
  elements.each { |item| sha << "#{item['n']}:#{item['payload']}" }
  sha.hexdigest
end

Mongo::Logger.logger = Logger.new($stderr, level: Logger::WARN)
feeds = Mongo::Client.new(ARGV.fetch(0))['feeds']
ELEMENTS.times do |number|
  feeds.update_one({ '_id' => 'long' }, { '$push' => { 'events' => element(number) } }, upsert: true)
end
events = feeds.find('_id' => 'long').first['events']
unless digest(events) == digest(Array.new(ELEMENTS) { |number| element(number) })
  abort "read #{events.length} elements that differ"
end

small = Array.new(3) { |number| { 'n' => number, 'payload' => '' } }
feeds.insert_one('_id' => 'gone')
feeds.bulk_write(
  [{ insert_one: { '_id' => 'short', 'events' => [] } },
   { update_one: { filter: { '_id' => 'short' }, update: { '$push' => { 'events' => { '$each' => small } } } } },
   { update_one: { filter: { '_id' => 'long' },
                   update: { '$push' => { 'events' => element(ELEMENTS) }, '$set' => { 'title' => 'long' } } } },
   { delete_one: { filter: { '_id' => 'gone' } } }]
)
abort 'short differs' unless feeds.find('_id' => 'short').first['events'] == small
abort 'gone still exists' if feeds.find('_id' => 'gone').first
long = feeds.find('_id' => 'long').first
abort 'the title is missing' unless long['title'] == 'long'
abort 'bookkeeping is visible' if long.key?('spill')
puts "elements #{long['events'].length} sha256 #{digest(long['events'])}"
