<?php
// Push an array past 16 MB with PHP's extension mongodb. Usage: php push.php URI [--pause]

declare(strict_types=1);

use MongoDB\Driver\BulkWrite;
use MongoDB\Driver\Manager;
use MongoDB\Driver\Query;

const ELEMENTS = 44;
const PAYLOAD = 1_000_000;

function element(int $number): array
{
    return ['n' => $number, 'payload' => str_repeat(chr(ord('a') + $number % 26), PAYLOAD)];
}

function digest(array $elements): string
{
    $sha = hash_init('sha256');
    foreach ($elements as $item) {
        $item = (array) $item;
        hash_update($sha, "$item[n]:$item[payload]");
    }
    return hash_final($sha);
}

function check(bool $right, string $what): void
{
    if (!$right) {
        throw new RuntimeException($what);
    }
}

/** The collection `feeds` of the URI's database. */
final class Feeds
{
    private readonly string $namespace;

    public function __construct(private readonly Manager $manager, string $uri)
    {
        check(preg_match('~^mongodb(?:\+srv)?://[^/]+/([^?]+)~', $uri, $found) === 1, "$uri names no database");
        $this->namespace = "$found[1].feeds";
    }

    public function find(string $id): ?object
    {
        return $this->manager->executeQuery($this->namespace, new Query(['_id' => $id]))->toArray()[0] ?? null;
    }

    public function write(BulkWrite $bulk): MongoDB\Driver\WriteResult
    {
        return $this->manager->executeBulkWrite($this->namespace, $bulk);
    }

    public function push(int $first, int $end): void
    {
        for ($number = $first; $number < $end; $number++) {
            $bulk = new BulkWrite();
            $bulk->update(['_id' => 'long'], ['$push' => ['events' => element($number)]], ['upsert' => true]);
            $this->write($bulk);
        }
    }
}

function main(array $arguments): void
{
    $feeds = new Feeds(new Manager($arguments[0]), $arguments[0]);
    $feeds->push(0, intdiv(ELEMENTS, 2));
    if (in_array('--pause', $arguments, true)) {
        echo "paused\n";
        fgets(STDIN);
        $feeds->find('none'); // the driver repeats a read on a new connection
    }
    $feeds->push(intdiv(ELEMENTS, 2), ELEMENTS);

    $events = $feeds->find('long')->events;
    check(digest($events) === digest(array_map('element', range(0, ELEMENTS - 1))),
        'read ' . count($events) . ' elements that differ');

    $first = new BulkWrite();
    $first->insert(['_id' => 'gone']);
    $feeds->write($first);
    $small = array_map(fn (int $number) => ['n' => $number, 'payload' => ''], range(0, 2));
    $bulk = new BulkWrite();
    $bulk->insert(['_id' => 'short', 'events' => []]);
    $bulk->update(['_id' => 'short'], ['$push' => ['events' => ['$each' => $small]]]);
    $bulk->update(['_id' => 'long'], ['$push' => ['events' => element(ELEMENTS)], '$set' => ['title' => 'long']]);
    $bulk->delete(['_id' => 'gone']);
    $result = $feeds->write($bulk);
    check([$result->getInsertedCount(), $result->getModifiedCount(), $result->getDeletedCount()] === [1, 2, 1],
        'the bulk write changed something else');
    check(array_map(fn (object $item) => (array) $item, $feeds->find('short')->events) === $small, 'short differs');
    check($feeds->find('gone') === null, 'gone still exists');

    $long = $feeds->find('long');
    check($long->title === 'long', 'the title is missing');
    check(!isset($long->spill), 'bookkeeping is visible');
    echo 'elements ', count($long->events), ' sha256 ', digest($long->events), "\n";
}

main(array_slice($argv, 1));
