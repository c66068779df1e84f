<?php
// Read an array that Spillway manages on a MongoDB-compatible server, and append to it, with only PHP's
// extension mongodb.
//
//     php feed.php NAME read OWNER [LIMIT [BEFORE]]   newest first; BEFORE is a printed number
//     php feed.php NAME count OWNER
//     php feed.php NAME append OWNER ELEMENT...       one operation per element
//
// NAME is a definition's name, OWNER and ELEMENT are Extended JSON (an owner may be a plain word). The
// environment variable SPILLWAY_URI has the store's URI, with a database.
// docs/reference/mongodb.md explains the fields under `spill`; docs/how-to/recipes.md explains which calls
// are safe and why.
//
// The library mongodb/mongodb is not needed. PHP has one integer type, so a small 64-bit integer of an
// element that is read and appended again becomes a 32-bit one.

declare(strict_types=1);

use MongoDB\BSON\Binary;
use MongoDB\Driver\Command;
use MongoDB\Driver\Manager;
use MongoDB\Driver\Query;
use MongoDB\Driver\WriteConcern;

const NO_NUMBER = PHP_INT_MAX; // above every sequence number
const OP_BYTES = 112;          // the maximum size of a stored operation id
const MARGIN_BYTES = 512;      // fields of `spill` that may be added, and longer numbers

// The values and the fields of definitions that this recipe knows. Another field may be a rule that an append of
// the recipe would break, so checkKnown refuses the definition.
const KNOWN_VALUES = ['layout' => ['outlier'], 'keep' => ['newest', 'oldest']];
const KNOWN_FIELDS = '
    name collection array countField overflowField pagesField pageCollection pageOwner pageNumber
    pageArray pageCount idField timeField layout keep opWindow keepElements keepSeconds largest bounds
    bounds.threshold bounds.pageCapacity bounds.headBytesMax bounds.pageBytesMax';

/** Where an array and its bookkeeping are in the documents of a collection. */
final class Place
{
    public function __construct(
        public readonly string $collection,
        public readonly string $array,
        public readonly string $spill,
        public readonly string $count,
    ) {
    }
}

/** The identity of one append. `base` is a value of the owner's `n` from before the first try. */
final class Operation
{
    public function __construct(public readonly string $id, public readonly int $base)
    {
    }
}

/** One array definition of a store. */
final class Feed
{
    private readonly object $definition;
    private readonly Place $heads;
    private readonly Place $pages;
    private readonly bool $keepsNewest;

    public function __construct(
        private readonly Manager $manager,
        private readonly string $database,
        private readonly string $name,
    ) {
        $query = new Query(['_id' => $name]);
        $found = $manager->executeQuery("$database.spillway.definitions", $query)->toArray();
        if (!$found) {
            throw new RuntimeException("there is no definition '$name'");
        }
        $entry = $found[0]->entry; // bounds may change: an application should read it again sometimes
        checkKnown($name, $entry);
        $this->definition = $entry;
        $this->keepsNewest = $entry->keep === 'newest';
        // A head may have several arrays. An array may be a path, such as stats.events.
        $spill = 'spill.' . str_replace('.', '$', $entry->array);
        $this->heads = new Place($entry->collection, $entry->array, $spill, $entry->countField ?? '');
        $this->pages = new Place($entry->pageCollection, $entry->pageArray, 'spill', $entry->pageCount ?? '');
    }

    // ---- reading -----------------------------------------------------------------------------

    /** The state of the document that `match` finds, and its newest elements below `before`. */
    private function readDocument(Place $place, array $match, int $before, int $limit): ?object
    {
        $live = ['$size' => ['$ifNull' => ["\$$place->array", []]]];
        $live = ['$cond' => [hasTypes($place->array), $live, -1]];
        $gone = ['$ifNull' => ["\$$place->spill.gone", []]];
        $below = ['$size' => ['$filter' => ['input' => $gone, 'cond' => ['$lt' => ['$$this', $before]]]]];
        $end = ['$subtract' => [['$subtract' => [$before, "\$$place->spill.first"]], $below]];
        $end = ['$max' => [0, ['$min' => [$live, $end]]]]; // elements below `before`
        $start = ['$max' => [0, ['$subtract' => [$end, $limit]]]];
        $count = ['$min' => [$limit, $end]];
        $run = ['$cond' => [['$gt' => [$count, 0]],
            ['$slice' => ["\$$place->array", $start, ['$max' => [1, $count]]]], []]];
        $found = $this->manager->executeReadCommand($this->database, new Command([
            'aggregate' => $place->collection,
            'pipeline' => [...$match, ['$project' => [
                'spill' => "\$$place->spill", 'live' => $live, 'start' => $start, 'run' => $run]]],
            'cursor' => new stdClass(),
            'readConcern' => ['level' => 'majority'], // see only what survives the loss of a server
        ]))->toArray();
        if (!$found) {
            return null;
        }
        $what = "$place->collection: '$place->array'";
        $managed = isset($found[0]->spill->epoch);
        if ($found[0]->live < 0) {
            throw new RuntimeException("$what is not an array, or a field around it is not a document");
        }
        if ($found[0]->live > 0 && !$managed) {
            throw new RuntimeException("$what is unmanaged; adopt it with `spillway migrate`");
        }
        if (!$managed) {
            return null;
        }
        $state = $found[0]->spill;
        $state->gone ??= [];
        sort($state->gone);
        $state->end = $state->first + $found[0]->live + count($state->gone);
        $state->rows = self::number($state, $found[0]->start, $found[0]->run);
        return $state;
    }

    /** Pairs of sequence number and element, from index `start` of the array, newest first. */
    private static function number(object $state, int $start, array $run): array
    {
        $gone = $state->gone;
        $rows = [];
        $seq = $state->first + $start;
        foreach ($run as $element) {
            while ($gone && $gone[0] <= $seq) {
                array_shift($gone);
                $seq++;
            }
            $rows[] = [$seq++, $element];
        }
        return array_reverse($rows);
    }

    private function head(mixed $owner, int $before = NO_NUMBER, int $limit = 0): ?object
    {
        return $this->readDocument($this->heads, [['$match' => ['_id' => ['$eq' => $owner]]]], $before, $limit);
    }

    /**
     * The owner's last page that begins below `before`: found by index, never by count. Only pages that the
     * head counts, and of its own incarnation (epoch), belong to the array.
     */
    private function page(mixed $owner, object $head, int $before = NO_NUMBER, int $limit = 0): ?object
    {
        return $this->readDocument($this->pages, [
            ['$match' => [
                $this->definition->pageOwner => ['$eq' => $owner],
                'spill.epoch' => $head->epoch,
                '_id.page' => ['$lt' => $head->pages],
                'spill.first' => ['$lt' => $before],
            ]],
            ['$sort' => ['spill.first' => -1, '_id' => -1]],
            ['$limit' => 1],
        ], $before, $limit);
    }

    /**
     * Up to `limit` elements numbered below `before`, newest first, as pairs of number and element. The last
     * number is the cursor for the next page. Appends do not invalidate it.
     */
    public function read(mixed $owner, int $limit = 20, int $before = NO_NUMBER): array
    {
        $head = $this->head($owner, $before, $limit);
        $rows = [];
        while ($head !== null && $before > $head->low && count($rows) < $limit) {
            $part = null;
            if (!$this->keepsNewest || $before <= $head->first) {
                $part = $this->page($owner, $head, $before, $limit - count($rows));
            }
            // Keep oldest: elements below all pages; keep newest: above them.
            $part ??= $head->first < $before ? $head : null;
            if ($part === null) {
                break;
            }
            array_push($rows, ...array_filter($part->rows, fn (array $row) => $row[0] >= $head->low));
            $before = $part->first;
        }
        return array_slice($rows, 0, $limit);
    }

    /** The exact number of live elements. The head's count field may be out of date. */
    public function count(mixed $owner): int
    {
        while (true) {
            $head = $this->head($owner);
            if ($head === null) {
                return 0;
            }
            $dead = $head->low + $head->removed;
            if ($this->keepsNewest) { // `removed` counts deleted numbers below `first`, `gone` has the rest
                return $head->end - count($head->gone) - $dead;
            }
            if ($head->pages === 0) {
                return $head->end - $dead;
            }
            $last = $this->page($owner, $head);
            $again = $this->head($owner);
            // A removal or a trim in between raises `rev`, a new page raises `pages`: then try again.
            if ($again !== null && $again->rev === $head->rev && $again->pages === $head->pages) {
                return ($last ?? $head)->end - $dead; // the first page may not exist yet
            }
        }
    }

    // ---- appending ---------------------------------------------------------------------------

    /** Make it before the first try, and keep it until there is an answer. */
    public function operation(mixed $owner): Operation
    {
        $head = $this->head($owner);
        $last = $head !== null && !$this->keepsNewest && $head->pages > 0 ? $this->page($owner, $head) : null;
        return new Operation(bin2hex(random_bytes(16)), ($last ?? $head)->n ?? 0);
    }

    /** Returns the element's sequence number. After a time-out, repeat it with the same operation. */
    public function append(mixed $owner, mixed $element, Operation $operation): int
    {
        // No head, no room, a sealed page, or appended before: leave it to the program.
        return $this->push($owner, $element, $operation)
            ?? $this->appendByProgram($owner, $element, $operation);
    }

    /** One findAndModify with a guard as its filter. Null: refused, and nothing has changed. */
    private function push(mixed $owner, mixed $element, Operation $operation): ?int
    {
        $bounds = $this->definition->bounds;
        $window = $this->definition->opWindow;
        $place = $this->heads;
        $match = ['_id' => ['$eq' => $owner]];
        $slots = $bounds->threshold;
        $most = $bounds->headBytesMax;
        $epoch = ['$exists' => true];
        if ($this->keepsNewest) { // the head grows by a page, and a little, before it spills
            $slots += $bounds->pageCapacity + intdiv($bounds->pageCapacity, 8) + 1;
        } else { // append to the last page, if the owner has pages
            $head = $this->head($owner);
            if ($head !== null && $head->pages > 0) {
                $place = $this->pages;
                $slots = $bounds->pageCapacity;
                $most = $bounds->pageBytesMax;
                $match = ['_id' => ['$eq' => ['owner' => $owner, 'page' => $head->pages - 1]],
                    $this->definition->pageOwner => ['$eq' => $owner]];
                $epoch = $head->epoch;
            }
        }
        $identity = new Binary($operation->id, Binary::TYPE_GENERIC);
        $live = ['$size' => ['$ifNull' => ["\$$place->array", []]]];
        $gone = ['$size' => ['$ifNull' => ["\$$place->spill.gone", []]]];
        $grows = elementBytes($element) + OP_BYTES * ($window + 1) + MARGIN_BYTES;
        $added = ["$place->spill.n" => 1] + ($place->count !== '' ? [$place->count => 1] : []);
        $answer = $this->manager->executeWriteCommand($this->database, new Command([
            'findAndModify' => $place->collection,
            'query' => $match + [
                "$place->spill.epoch" => $epoch,
                "$place->spill.sealed" => ['$ne' => true],
                "$place->spill.ops.id" => ['$ne' => $identity],               // not appended before
                "$place->spill.n" => ['$lt' => $operation->base + $window], // or the window may have dropped the id
                '$expr' => ['$and' => [
                    ['$lte' => [['$add' => [$live, $gone, 1]], $slots]],
                    ['$lte' => [['$add' => [['$bsonSize' => '$$ROOT'], $grows]], $most]],
                    // Another program may have replaced the array: then deleted numbers lie behind its end.
                    ['$lt' => [['$max' => "\$$place->spill.gone"],
                        ['$add' => ["\$$place->spill.first", $live, $gone]]]],
                ]],
            ],
            'update' => [
                '$push' => [
                    $place->array => ['$each' => [$element]],
                    "$place->spill.ops" => ['$each' => [['id' => $identity, 'count' => 1, 'after' => 0]],
                        '$position' => 0, '$slice' => $window],
                ],
                '$inc' => $added,
            ],
            'new' => true,
            'fields' => ['_id' => 0, 'first' => "\$$place->spill.first", 'live' => $live, 'gone' => $gone],
        ]), ['writeConcern' => new WriteConcern(WriteConcern::MAJORITY)])->toArray()[0]->value;
        return $answer === null ? null : $answer->first + $answer->live + $answer->gone - 1;
    }

    /** `spillway append` creates heads and pages, spills, and recognizes repeated operations. */
    private function appendByProgram(mixed $owner, mixed $element, Operation $operation): int
    {
        $program = getenv('SPILLWAY') ?: 'spillway';
        $command = [$program, 'append', 'env:', $this->name, extended($owner), '-', '--quiet',
            '--op', "$operation->id@$operation->base"];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes);
        if ($process === false) {
            throw new RuntimeException("$program cannot be started");
        }
        fwrite($pipes[0], extended($element) . "\n");
        fclose($pipes[0]);
        $printed = stream_get_contents($pipes[1]);
        fclose($pipes[1]);
        $code = proc_close($process);
        if ($code !== 0) {
            throw new RuntimeException("$program append ended with $code");
        }
        return (int) $printed;
    }
}

/** Refuse a definition that has a field, or a value, that this recipe does not know. */
function checkKnown(string $name, object $definition): void
{
    $unknown = [];
    foreach (KNOWN_VALUES as $field => $values) {
        $value = $definition->$field ?? '';
        if (!in_array($value, $values, true)) {
            $unknown[] = "$field '$value'";
        }
    }
    $bounds = array_map(fn ($field) => "bounds.$field", array_keys((array) $definition->bounds));
    $fields = [...array_keys((array) $definition), ...$bounds];
    foreach (array_diff($fields, preg_split('/\s+/', KNOWN_FIELDS)) as $field) {
        $unknown[] = "field '$field'";
    }
    if ($unknown) {
        throw new RuntimeException("definition '$name': this recipe does not know its $unknown[0]; "
            . 'use the library or the program');
    }
}

/** An expression: the array, and each document around it, is missing or has its type. */
function hasTypes(string $array): array
{
    $parts = explode('.', $array);
    $all = [];
    for ($length = 1; $length <= count($parts); $length++) {
        $path = implode('.', array_slice($parts, 0, $length));
        $type = $length === count($parts) ? 'array' : 'object';
        $all[] = ['$in' => [['$type' => "\$$path"], ['missing', $type]]];
    }
    return ['$and' => $all];
}

/** The size of an array entry: its value, a type, and an index of up to seven digits. */
function elementBytes(mixed $element): int
{
    return strlen(MongoDB\BSON\fromPHP(['v' => $element])) + 7;
}

// These functions belong to version 1 of the extension; in version 2 they are methods of
// MongoDB\BSON\Document.

function extended(mixed $value): string
{
    $text = MongoDB\BSON\toCanonicalExtendedJSON(MongoDB\BSON\fromPHP(['v' => $value]));
    return substr($text, strlen('{ "v" : '), -strlen(' }'));
}

function parse(string $text): mixed
{
    return MongoDB\BSON\toPHP(MongoDB\BSON\fromJSON('{"v": ' . $text . '}'))->v;
}

function parseOwner(string $text): mixed
{
    try {
        return parse($text);
    } catch (MongoDB\Driver\Exception\UnexpectedValueException) {
        return $text;
    }
}

function main(array $arguments): void
{
    $uri = (string) getenv('SPILLWAY_URI');
    if (count($arguments) < 3 || !preg_match('~^mongodb(?:\+srv)?://[^/]+/([^?]+)~', $uri, $found)) {
        throw new RuntimeException('usage: feed.php NAME read|count|append OWNER ..., with SPILLWAY_URI');
    }
    $feed = new Feed(new Manager($uri), rawurldecode($found[1]), $arguments[0]);
    $owner = parseOwner($arguments[2]);
    $rest = array_slice($arguments, 3);
    switch ($arguments[1]) {
        case 'read':
            foreach ($feed->read($owner, ...array_map('intval', $rest)) as [$seq, $element]) {
                $row = MongoDB\BSON\fromPHP(['seq' => $seq, 'element' => $element]);
                echo MongoDB\BSON\toRelaxedExtendedJSON($row), "\n";
            }
            break;
        case 'count':
            echo $feed->count($owner), "\n";
            break;
        case 'append':
            foreach (array_map('parse', $rest) as $element) {
                echo $feed->append($owner, $element, $feed->operation($owner)), "\n";
            }
            break;
        default:
            throw new RuntimeException("there is no command '$arguments[1]'");
    }
}

main(array_slice($argv, 1));
