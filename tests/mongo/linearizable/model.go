package main

import (
	"fmt"
	"sort"

	"github.com/anishathalye/porcupine"
)

// input is a client's call on one owner's array.
type input struct {
	kind   string  // append, count, read, remove, trim; of a set: add, remove-id, contains
	labels []int64 // append: the labels of the elements
	newest bool    // read: newest first
	cursor int64   // read: only below (newest first) or above; -1 for no bound
	limit  int64   // read
	number int64   // remove: the element's number; trim: the new trim watermark; of a set: the id
}

// anyNumber is the answer to an append whose caller does not get the number: a driver's push.
const anyNumber = -1

// output is the answer to a client's call.
type output struct {
	unknown bool  // there is no answer
	number  int64 // append, read: of the first element; count: how many; remove: see removable;
	// add: 1 if the id was new; contains: 1 if it is there
	labels []int64 // read
	more   bool    // read: there may be elements beyond
}

// list has all elements ever appended, the newest first; nil is empty. Lists share their tails, so
// that the checker can keep many of them.
type list struct {
	label  int64
	length int64
	hash   uint64
	older  *list
}

func (l *list) len() int64 {
	if l == nil {
		return 0
	}
	return l.length
}

func (l *list) push(label int64) *list {
	hash := uint64(14695981039346656037)
	if l != nil {
		hash = l.hash
	}
	hash = (hash ^ uint64(label)) * 1099511628211
	return &list{label: label, length: l.len() + 1, hash: hash, older: l}
}

// array is the state of an array. Numbers below `low` and numbers in `removed` are deleted.
type array struct {
	*list
	low     int64
	removed []int64 // ascending, none below low; never changed in place
}

func (a array) count() int64 {
	return a.len() - a.low - int64(len(a.removed))
}

// place returns the index of number in removed, or the index at which to insert it.
func (a array) place(number int64) (int, bool) {
	at := sort.Search(len(a.removed), func(i int) bool { return a.removed[i] >= number })
	return at, at < len(a.removed) && a.removed[at] == number
}

func (a array) live(number int64) bool {
	_, gone := a.place(number)
	return number >= a.low && number < a.len() && !gone
}

func (a array) remove(number int64) array {
	if !a.live(number) {
		return a
	}
	at, _ := a.place(number)
	a.removed = append(append(append([]int64{}, a.removed[:at]...), number), a.removed[at:]...)
	return a
}

func (a array) trim(below int64) array {
	if below > a.low {
		at, _ := a.place(below)
		a.low, a.removed = below, a.removed[at:]
	}
	return a
}

func (a array) equal(b array) bool {
	if a.low != b.low || len(a.removed) != len(b.removed) {
		return false
	}
	for i := range a.removed {
		if a.removed[i] != b.removed[i] {
			return false
		}
	}
	return equal(a.list, b.list)
}

// removable returns whether a removal in this state may have this answer: 1, the element existed; 0,
// it did not; -1, either of them, because the removal was retried.
func removable(a array, in input, out output) bool {
	return out.unknown || out.number < 0 || (out.number == 1) == a.live(in.number)
}

func equal(left, right *list) bool {
	if left.len() != right.len() {
		return false
	}
	for left != right {
		if left.label != right.label || left.hash != right.hash {
			return false
		}
		left, right = left.older, right.older
	}
	return true
}

// run returns the elements numbered first .. end-1, the newest first.
func (l *list) run(first, end int64) []int64 {
	var labels []int64
	for ; l != nil && l.length > first; l = l.older {
		if l.length <= end {
			labels = append(labels, l.label)
		}
	}
	return labels
}

func clamp(n, low, high int64) int64 {
	if n < low {
		return low
	}
	if n > high {
		return high
	}
	return n
}

// readable returns whether a read of a list without removals may have this answer.
func readable(l *list, in input, out output) bool {
	var first, end int64
	if in.newest {
		end = l.len()
		if in.cursor >= 0 {
			end = clamp(in.cursor, 0, end)
		}
		first = clamp(end-in.limit, 0, end)
	} else {
		first = clamp(in.cursor+1, 0, l.len())
		end = clamp(first+in.limit, first, l.len())
	}
	if int64(len(out.labels)) != end-first {
		return false
	}
	beyond := first > 0
	if !in.newest {
		beyond = end < l.len()
	}
	if beyond && !out.more {
		return false
	}
	if end == first {
		return true
	}
	if in.newest && out.number != end-1 || !in.newest && out.number != first {
		return false
	}
	for i, label := range l.run(first, end) {
		at := i
		if !in.newest {
			at = len(out.labels) - 1 - i
		}
		if out.labels[at] != label {
			return false
		}
	}
	return true
}

// model is a list: each append adds its elements at the end, together and each once.
var model = porcupine.Model{
	Init: func() interface{} { return array{} },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		a, call, answer := state.(array), in.(input), out.(output)
		switch call.kind {
		case "append":
			if !answer.unknown && answer.number != anyNumber && answer.number != a.len() {
				return false, a
			}
			for _, label := range call.labels {
				a.list = a.push(label)
			}
			return true, a
		case "count":
			return answer.number == a.count(), a
		case "remove":
			return removable(a, call, answer), a.remove(call.number)
		case "trim":
			return true, a.trim(call.number)
		default:
			return readable(a.list, call, answer), a
		}
	},
	Equal: func(left, right interface{}) bool { return left.(array).equal(right.(array)) },
	Hash: func(state interface{}) uint64 {
		a := state.(array)
		hash := uint64(a.low)*31 + uint64(len(a.removed))
		if a.list != nil {
			hash ^= a.hash
		}
		return hash
	},
	DescribeOperation: func(in, out interface{}) string { return describe(in.(input), out.(output)) },
	DescribeState: func(state interface{}) string {
		a := state.(array)
		return fmt.Sprintf("%d elements from %d on, without %v, the newest %v", a.count(), a.low,
			a.removed, a.run(a.len()-5, a.len()))
	},
}

func describe(in input, out output) string {
	switch {
	case ofSet(in.kind) && out.unknown:
		return fmt.Sprintf("%s %d -> unknown", in.kind, in.number)
	case ofSet(in.kind):
		return fmt.Sprintf("%s %d -> %d", in.kind, in.number, out.number)
	case in.kind == "append" && out.unknown:
		return fmt.Sprintf("append %v -> unknown", in.labels)
	case in.kind == "append":
		return fmt.Sprintf("append %v -> from %d", in.labels, out.number)
	case in.kind == "count":
		return fmt.Sprintf("count -> %d", out.number)
	case in.kind == "remove":
		return fmt.Sprintf("remove %d -> %d", in.number, out.number)
	case in.kind == "trim":
		return fmt.Sprintf("trim below %d", in.number)
	case in.newest:
		return fmt.Sprintf("read newest %d before %d -> %s", in.limit, in.cursor, elements(out))
	default:
		return fmt.Sprintf("read oldest %d after %d -> %s", in.limit, in.cursor, elements(out))
	}
}

// elements describes the elements read, in a line of limited length.
func elements(out output) string {
	const most = 12
	text := fmt.Sprintf("from %d: %v", out.number, out.labels)
	if len(out.labels) > most {
		text = fmt.Sprintf("from %d: %v and %d more", out.number, out.labels[:most],
			len(out.labels)-most)
	}
	return fmt.Sprintf("%s, more %v", text, out.more)
}
