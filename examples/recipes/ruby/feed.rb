# Read an array that Spillway manages on a MongoDB-compatible server, and append to it, with only Ruby's
# driver (gem mongo, 2.18 or later). The project's tests do not run this recipe.
#
#     ruby feed.rb NAME read OWNER [LIMIT [BEFORE]]   newest first; BEFORE is a printed number
#     ruby feed.rb NAME count OWNER
#     ruby feed.rb NAME append OWNER ELEMENT...       one operation per element
#
# NAME is a definition's name, OWNER and ELEMENT are Extended JSON (an owner may be a plain word). The
# environment variable SPILLWAY_URI has the store's URI, with a database.
# docs/reference/mongodb.md explains the fields under `spill`; docs/how-to/recipes.md explains which calls
# are safe and why.

require 'json'
require 'mongo'
require 'open3'
require 'securerandom'

NO_NUMBER = (2**63) - 1 # above every sequence number
OP_BYTES = 112          # the maximum size of a stored operation id
MARGIN_BYTES = 512      # fields of `spill` that may be added, and longer numbers

# The values and the fields of definitions that this recipe knows. Another field may be a rule that an append
# of the recipe would break, so check_known refuses the definition.
KNOWN_VALUES = { 'layout' => %w[outlier], 'keep' => %w[newest oldest] }.freeze
KNOWN_FIELDS = %w[
  name collection array countField overflowField pagesField pageCollection pageOwner pageNumber
  pageArray pageCount idField timeField layout keep opWindow keepElements keepSeconds largest bounds
  bounds.threshold bounds.pageCapacity bounds.headBytesMax bounds.pageBytesMax
].freeze

# Where an array and its bookkeeping are in the documents of a collection.
Place = Struct.new(:collection, :array, :spill, :count)

# The identity of one append. `base` is a value of the owner's `n` from before the first try.
Operation = Struct.new(:id, :base)

# One array definition of a store.
class Feed
  def initialize(database, name)
    found = database['spillway.definitions'].find('_id' => name).first
    raise "there is no definition '#{name}'" unless found

    @name = name
    @definition = found['entry'] # bounds may change: an application should read it again sometimes
    check_known(name, @definition)
    @keeps_newest = @definition['keep'] == 'newest'
    # A head may have several arrays. An array may be a path, such as stats.events.
    array = @definition['array']
    spill = "spill.#{array.tr('.', '$')}"
    @heads = Place.new(database[@definition['collection']], array, spill, @definition['countField'])
    @pages = Place.new(database[@definition['pageCollection']], @definition['pageArray'], 'spill',
                       @definition['pageCount'])
  end

  # ---- reading -------------------------------------------------------------------------------

  # Up to `limit` elements numbered below `before`, newest first, as pairs of number and element. The last
  # number is the cursor for the next page. Appends do not invalidate it.
  def read(owner, limit = 20, before = NO_NUMBER)
    head = head(owner, before, limit)
    rows = []
    while head && before > head['low'] && rows.length < limit
      part = nil
      part = page(owner, head, before, limit - rows.length) if !@keeps_newest || before <= head['first']
      # Keep oldest: elements below all pages; keep newest: above them.
      part ||= head if head['first'] < before
      break unless part

      rows.concat(part['rows'].select { |seq, _| seq >= head['low'] })
      before = part['first']
    end
    rows.first(limit)
  end

  # The exact number of live elements. The head's count field may be out of date.
  def count(owner)
    loop do
      head = head(owner)
      return 0 unless head

      dead = head['low'] + head['removed']
      # `removed` counts deleted numbers below `first`, `gone` has the rest.
      return head['end'] - head['gone'].length - dead if @keeps_newest
      return head['end'] - dead if head['pages'].zero?

      last = page(owner, head)
      again = head(owner)
      # A removal or a trim in between raises `rev`, a new page raises `pages`: then try again.
      next unless again && again['rev'] == head['rev'] && again['pages'] == head['pages']

      return (last || head)['end'] - dead # the first page may not exist yet
    end
  end

  # ---- appending -----------------------------------------------------------------------------

  # Make it before the first try, and keep it until there is an answer.
  def operation(owner)
    head = head(owner)
    last = page(owner, head) if head && !@keeps_newest && head['pages'].positive?
    last ||= head
    Operation.new(SecureRandom.hex(16), last ? last['n'] : 0)
  end

  # Returns the element's sequence number. After a time-out, repeat it with the same operation.
  def append(owner, element, operation)
    # No head, no room, a sealed page, or appended before: leave it to the program.
    push(owner, element, operation) || append_by_program(owner, element, operation)
  end

  private

  # The state of the document that `match` finds, and its newest elements below `before`.
  def read_document(place, match, before, limit)
    live = { '$size' => { '$ifNull' => ["$#{place.array}", []] } }
    live = { '$cond' => [types_of(place.array), live, -1] }
    gone = { '$ifNull' => ["$#{place.spill}.gone", []] }
    below = { '$size' => { '$filter' => { 'input' => gone, 'cond' => { '$lt' => ['$$this', before] } } } }
    stop = { '$subtract' => [{ '$subtract' => [before, "$#{place.spill}.first"] }, below] }
    stop = { '$max' => [0, { '$min' => [live, stop] }] } # elements below `before`
    start = { '$max' => [0, { '$subtract' => [stop, limit] }] }
    count = { '$min' => [limit, stop] }
    run = { '$cond' => [{ '$gt' => [count, 0] },
                        { '$slice' => ["$#{place.array}", start, { '$max' => [1, count] }] }, []] }
    found = place.collection.aggregate(
      [*match, { '$project' => { 'spill' => "$#{place.spill}", 'live' => live, 'start' => start, 'run' => run } }]
    ).first
    return nil unless found

    what = "#{place.collection.name}: '#{place.array}'"
    raise "#{what} is not an array, or a field around it is not a document" if found['live'].negative?

    state = found['spill']
    managed = state && state.key?('epoch')
    raise "#{what} is unmanaged; adopt it with `spillway migrate`" if !managed && found['live'].positive?
    return nil unless managed

    state['gone'] = (state['gone'] || []).sort
    state['end'] = state['first'] + found['live'] + state['gone'].length
    state['rows'] = number(state, found['start'], found['run'])
    state
  end

  # Pairs of sequence number and element, from index `start` of the array, newest first.
  def number(state, start, run)
    gone = state['gone'].dup
    seq = state['first'] + start
    rows = run.map do |element|
      while gone.any? && gone.first <= seq
        gone.shift
        seq += 1
      end
      seq += 1
      [seq - 1, element]
    end
    rows.reverse
  end

  def head(owner, before = NO_NUMBER, limit = 0)
    read_document(@heads, [{ '$match' => { '_id' => { '$eq' => owner } } }], before, limit)
  end

  # The owner's last page that begins below `before`: found by index, never by count. Only pages that the
  # head counts, and of its own incarnation (epoch), belong to the array.
  def page(owner, head, before = NO_NUMBER, limit = 0)
    match = { @definition['pageOwner'] => { '$eq' => owner }, 'spill.epoch' => head['epoch'],
              '_id.page' => { '$lt' => head['pages'] }, 'spill.first' => { '$lt' => before } }
    read_document(@pages, [{ '$match' => match }, { '$sort' => { 'spill.first' => -1, '_id' => -1 } },
                           { '$limit' => 1 }], before, limit)
  end

  # The document that accepts appends: place, filter, guard of the incarnation, bounds in elements and bytes.
  def tail(owner)
    bounds = @definition['bounds']
    slots = bounds['threshold']
    if @keeps_newest # the head grows by a page, and a little, before it spills
      slots += bounds['pageCapacity'] + (bounds['pageCapacity'] / 8) + 1
    else # append to the last page, if the owner has pages
      head = head(owner)
      if head && head['pages'].positive?
        id = { 'owner' => owner, 'page' => head['pages'] - 1 }
        return [@pages, { '_id' => { '$eq' => id }, @definition['pageOwner'] => { '$eq' => owner } },
                head['epoch'], bounds['pageCapacity'], bounds['pageBytesMax']]
      end
    end
    [@heads, { '_id' => { '$eq' => owner } }, { '$exists' => true }, slots, bounds['headBytesMax']]
  end

  # One findAndModify with a guard as its filter. Nil: refused, and nothing has changed.
  def push(owner, element, operation)
    place, match, epoch, slots, most = tail(owner)
    window = @definition['opWindow']
    spill = place.spill
    identity = BSON::Binary.new(operation.id)
    live = { '$size' => { '$ifNull' => ["$#{place.array}", []] } }
    gone = { '$size' => { '$ifNull' => ["$#{spill}.gone", []] } }
    grows = element_bytes(element) + (OP_BYTES * (window + 1)) + MARGIN_BYTES
    guard = match.merge(
      "#{spill}.epoch" => epoch,
      "#{spill}.sealed" => { '$ne' => true },
      "#{spill}.ops.id" => { '$ne' => identity },             # not appended before
      "#{spill}.n" => { '$lt' => operation.base + window },   # or the window may have dropped the id
      '$expr' => { '$and' => [{ '$lte' => [{ '$add' => [live, gone, 1] }, slots] },
                              { '$lte' => [{ '$add' => [{ '$bsonSize' => '$$ROOT' }, grows] }, most] },
                              # Another program may have replaced the array: then deleted numbers lie
                              # behind its end.
                              { '$lt' => [{ '$max' => "$#{spill}.gone" },
                                          { '$add' => ["$#{spill}.first", live, gone] }] }] }
    )
    note = { 'id' => identity, 'count' => 1, 'after' => 0 }
    added = { "#{spill}.n" => 1 }
    added[place.count] = 1 if place.count && !place.count.empty?
    after = place.collection.find_one_and_update(
      guard,
      { '$push' => { place.array => { '$each' => [element] },
                     "#{spill}.ops" => { '$each' => [note], '$position' => 0, '$slice' => window } },
        '$inc' => added },
      return_document: :after,
      projection: { '_id' => 0, 'first' => "$#{spill}.first", 'live' => live, 'gone' => gone }
    )
    after && (after['first'] + after['live'] + after['gone'] - 1)
  end

  # `spillway append` creates heads and pages, spills, and recognizes repeated operations.
  def append_by_program(owner, element, operation)
    program = ENV.fetch('SPILLWAY', 'spillway')
    printed, status = Open3.capture2(program, 'append', 'env:', @name, extended(owner), '-', '--quiet',
                                     '--op', "#{operation.id}@#{operation.base}",
                                     stdin_data: "#{extended(element)}\n")
    raise "#{program} append: #{status}" unless status.success?

    Integer(printed)
  end
end

# Refuse a definition that has a field, or a value, that this recipe does not know.
def check_known(name, definition)
  unknown = KNOWN_VALUES.reject { |field, values| values.include?(definition[field]) }
                        .map { |field, _| "#{field} '#{definition[field]}'" }
  fields = definition.keys + definition['bounds'].keys.map { |field| "bounds.#{field}" }
  unknown += (fields - KNOWN_FIELDS).map { |field| "field '#{field}'" }
  return if unknown.empty?

  raise "definition '#{name}': this recipe does not know its #{unknown.first}; use the library or the program"
end

# An expression: the array, and each document around it, is missing or has its type.
def types_of(array)
  parts = array.split('.')
  all = (1..parts.length).map do |length|
    type = length == parts.length ? 'array' : 'object'
    { '$in' => [{ '$type' => "$#{parts.first(length).join('.')}" }, ['missing', type]] }
  end
  { '$and' => all }
end

# The size of an array entry: its value, a type, and an index of up to seven digits.
def element_bytes(element)
  BSON::Document.new('v' => element).to_bson.length + 7
end

def extended(value)
  JSON.generate(value.as_extended_json)
end

def parse(text)
  BSON::ExtJSON.parse("{\"v\": #{text}}")['v']
end

def parse_owner(text)
  parse(text)
rescue JSON::ParserError
  text
end

def main(name, command, owner, *rest)
  Mongo::Logger.logger = Logger.new($stderr, level: Logger::WARN)
  # Appends survive, and reads see only what survives, as long as a majority of the servers does.
  client = Mongo::Client.new(ENV.fetch('SPILLWAY_URI'), write: { w: :majority }, read_concern: { level: :majority })
  feed = Feed.new(client.database, name)
  owner = parse_owner(owner)
  case command
  when 'read'
    feed.read(owner, *rest.map { |number| Integer(number) }).each do |seq, element|
      puts JSON.generate('seq' => seq, 'element' => element.as_extended_json(mode: :relaxed))
    end
  when 'count' then puts feed.count(owner)
  when 'append'
    rest.each { |text| puts feed.append(owner, parse(text), feed.operation(owner)) }
  else abort "there is no command '#{command}'"
  end
end

abort 'usage: feed.rb NAME read|count|append OWNER ...' if ARGV.length < 3
main(*ARGV)
