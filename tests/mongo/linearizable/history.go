package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Keep these equal to tests/mongo/history.c.
const (
	labelsOfWorker = 1000000000
	batchMax       = 9
)

type key struct {
	worker int
	number int64
}

// history has the operations of each owner, in the order of their calls in the files. Each id of an
// array that keeps each id once counts as an owner of its own: "OWNER id ID".
type history struct {
	owners []string
	byName map[string][]*porcupine.Operation
	open   map[key]*porcupine.Operation
}

func newHistory() *history {
	return &history{
		byName: map[string][]*porcupine.Operation{},
		open:   map[key]*porcupine.Operation{},
	}
}

func (h *history) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 64<<20)
	for line := 1; scanner.Scan(); line++ {
		fields := strings.Fields(scanner.Text())
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if err := h.readLine(fields); err != nil {
			return fmt.Errorf("%s:%d: %w", path, line, err)
		}
	}
	return scanner.Err()
}

// numbers reads every field as a number.
func numbers(fields []string) ([]int64, error) {
	var all []int64
	for _, field := range fields {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func (h *history) readLine(fields []string) error {
	if len(fields) < 4 {
		return fmt.Errorf("a line of %d words", len(fields))
	}
	when, err := numbers(fields[:3])
	if err != nil {
		return err
	}
	id := key{worker: int(when[1]), number: when[2]}
	word, rest := fields[3], fields[4:]
	switch word {
	case "append", "count", "read", "remove", "trim", "add", "remove-id", "contains":
		return h.call(id, when[0], word, rest)
	case "appended", "counted", "got", "removed", "trimmed", "added", "contained", "unknown":
		return h.answer(id, when[0], word, rest)
	}
	return fmt.Errorf("unknown word %q", word)
}

// call adds an operation that has no answer yet: it may take effect at any time.
func (h *history) call(id key, time int64, word string, fields []string) error {
	if len(fields) == 0 {
		return fmt.Errorf("no owner")
	}
	in, owner := input{kind: word}, fields[0]
	var err error
	var values []int64
	switch {
	case word == "append" && len(fields) == 3:
		values, err = numbers(fields[1:2])
		for i := int64(0); err == nil && i < values[0]; i++ {
			in.labels = append(in.labels,
				int64(id.worker)*labelsOfWorker+id.number*(batchMax+1)+i)
		}
	case word == "read" && len(fields) == 4:
		in.newest = fields[1] == "newest"
		values, err = numbers(fields[2:])
		if err == nil {
			in.cursor, in.limit = values[0], values[1]
		}
	case (word == "remove" || word == "trim") && len(fields) == 2:
		values, err = numbers(fields[1:])
		if err == nil {
			in.number = values[0]
		}
	case ofSet(word) && len(fields) == 2:
		values, err = numbers(fields[1:])
		if err == nil {
			in.number = values[0]
			owner = fmt.Sprintf("%s id %d", owner, in.number)
		}
	case word != "count" || len(fields) != 1:
		err = fmt.Errorf("%s with %d words", word, len(fields))
	}
	if err != nil {
		return err
	}
	operation := &porcupine.Operation{ClientId: id.worker, Input: in, Call: time,
		Output: output{unknown: true}, Return: math.MaxInt64}
	if _, known := h.byName[owner]; !known {
		h.owners = append(h.owners, owner)
	}
	h.byName[owner] = append(h.byName[owner], operation)
	h.open[id] = operation
	return nil
}

func (h *history) answer(id key, time int64, word string, fields []string) error {
	operation := h.open[id]
	if operation == nil {
		return fmt.Errorf("an answer without a call")
	}
	delete(h.open, id)
	if word == "unknown" {
		return nil
	}
	values, err := numbers(fields)
	if err != nil {
		return err
	}
	out := output{}
	switch {
	case word == "trimmed" && len(values) == 0:
	case word != "got" && word != "trimmed" && len(values) == 1:
		out.number = values[0]
	case word == "got" && len(values) >= 2:
		out.number, out.more, out.labels = values[0], values[1] != 0, values[2:]
	default:
		return fmt.Errorf("%s with %d numbers", word, len(values))
	}
	operation.Output = out
	operation.Return = time
	return nil
}

// shown returns the labels in the last read, each with its first place, if the history ends with a read of the whole array that
// began after all other answers.
func shown(operations []*porcupine.Operation) (map[int64]int64, bool) {
	var last *porcupine.Operation
	returned := int64(math.MinInt64)
	for _, operation := range operations {
		if operation.Output.(output).unknown {
			continue
		}
		if last == nil || operation.Call > last.Call {
			last, operation = operation, last
		}
		if operation != nil && operation.Return > returned {
			returned = operation.Return
		}
	}
	if last == nil || returned > last.Call {
		return nil, false
	}
	in, out := last.Input.(input), last.Output.(output)
	if in.kind != "read" || in.newest || in.cursor >= 0 || out.more {
		return nil, false
	}
	labels := map[int64]int64{}
	for place, label := range out.labels {
		if _, before := labels[label]; !before {
			labels[label] = int64(place)
		}
	}
	return labels, true
}

// numbered gives the appends of callers that get no numbers the places of their elements in the last
// read. Where nothing is removed, an order of the operations can only have these. It saves the checker
// from trying all orders of the appends that ran at the same time.
func numbered(operation porcupine.Operation, labels map[int64]int64) porcupine.Operation {
	in, out := operation.Input.(input), operation.Output.(output)
	place, found := labels[in.labels[0]]
	if !found {
		place = math.MaxInt64 // acknowledged and lost
	}
	out.number, out.unknown = place, false
	operation.Output = out
	return operation
}

// unnumbered returns whether the callers of appends get no numbers, and no element is removed.
func unnumbered(operations []*porcupine.Operation) bool {
	any := false
	for _, operation := range operations {
		in, out := operation.Input.(input), operation.Output.(output)
		if in.kind == "remove" || in.kind == "trim" {
			return false
		}
		any = any || in.kind == "append" && !out.unknown && out.number == anyNumber
	}
	return any
}

// operations returns the operations of an owner that must be checked. Reads and counts (and whether a
// set contains an id) without an answer show nothing. If an append has no answer, and the last read of the whole array does not show
// it, then it had no effect before that read. It is left out, which saves the checker many tries.
func (h *history) operations(owner string) []porcupine.Operation {
	labels, whole := shown(h.byName[owner])
	number := whole && unnumbered(h.byName[owner])
	var all []porcupine.Operation
	for _, operation := range h.byName[owner] {
		in, unknown := operation.Input.(input), operation.Output.(output).unknown
		says := !unknown || in.kind != "count" && in.kind != "read" && in.kind != "contains"
		if !says || unknown && in.kind == "append" && whole && !has(labels, in) {
			continue
		}
		if number && in.kind == "append" {
			all = append(all, numbered(*operation, labels))
		} else {
			all = append(all, *operation)
		}
	}
	return all
}

func has(labels map[int64]int64, in input) bool {
	_, found := labels[in.labels[0]]
	return found
}
