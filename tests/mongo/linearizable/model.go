package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// An operation on one owner's array, as a client called it.
type input struct {
	kind   string  // append, count, read
	labels []int64 // append: what the elements say of themselves
	newest bool    // read: newest first
	cursor int64   // read: only below (newest first) or above; -1 for no bound
	limit  int64   // read
}

// What a client was answered.
type output struct {
	unknown bool    // append: it was given up
	number  int64   // append: of the first element; count: how many; read: of the first element
	labels  []int64 // read
	more    bool    // read: there may be elements beyond
}

// The state is the list of all elements so far, the newest first; nil is the empty array. Lists
// share their ends, so that the checker can keep many of them.
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

// readable says whether a read of this state is answered so.
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

// model: each append adds its elements, all together and each once, behind what is there.
var model = porcupine.Model{
	Init: func() interface{} { return (*list)(nil) },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		l, call, answer := state.(*list), in.(input), out.(output)
		switch call.kind {
		case "append":
			if !answer.unknown && answer.number != l.len() {
				return false, l
			}
			for _, label := range call.labels {
				l = l.push(label)
			}
			return true, l
		case "count":
			return answer.number == l.len(), l
		default:
			return readable(l, call, answer), l
		}
	},
	Equal: func(left, right interface{}) bool { return equal(left.(*list), right.(*list)) },
	Hash: func(state interface{}) uint64 {
		if l := state.(*list); l != nil {
			return l.hash
		}
		return 0
	},
	DescribeOperation: func(in, out interface{}) string { return describe(in.(input), out.(output)) },
	DescribeState: func(state interface{}) string {
		l := state.(*list)
		return fmt.Sprintf("%d elements, the newest %v", l.len(), l.run(l.len()-5, l.len()))
	},
}

func describe(in input, out output) string {
	switch {
	case in.kind == "append" && out.unknown:
		return fmt.Sprintf("append %v -> unknown", in.labels)
	case in.kind == "append":
		return fmt.Sprintf("append %v -> from %d", in.labels, out.number)
	case in.kind == "count":
		return fmt.Sprintf("count -> %d", out.number)
	case in.newest:
		return fmt.Sprintf("read newest %d before %d -> %s", in.limit, in.cursor, elements(out))
	default:
		return fmt.Sprintf("read oldest %d after %d -> %s", in.limit, in.cursor, elements(out))
	}
}

// elements describes what was read, in a line that can be taken in.
func elements(out output) string {
	const most = 12
	text := fmt.Sprintf("from %d: %v", out.number, out.labels)
	if len(out.labels) > most {
		text = fmt.Sprintf("from %d: %v and %d more", out.number, out.labels[:most],
			len(out.labels)-most)
	}
	return fmt.Sprintf("%s, more %v", text, out.more)
}
