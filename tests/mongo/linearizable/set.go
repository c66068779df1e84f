package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

func ofSet(kind string) bool {
	return kind == "add" || kind == "remove-id" || kind == "contains"
}

// setModel is one id of a set: there or not. An operation without an answer may take effect at any
// time after its call; at the end of the order nobody sees it.
var setModel = porcupine.Model{
	Init: func() interface{} { return false },
	Step: func(state, in, out interface{}) (bool, interface{}) {
		present, call, answer := state.(bool), in.(input), out.(output)
		switch call.kind {
		case "add":
			return answer.unknown || (answer.number == 1) != present, true
		case "remove-id":
			return answer.unknown || answer.number < 0 || (answer.number == 1) == present, false
		default:
			return (answer.number == 1) == present, present
		}
	},
	DescribeOperation: func(in, out interface{}) string { return describe(in.(input), out.(output)) },
	DescribeState: func(state interface{}) string {
		return fmt.Sprintf("the id is there: %v", state.(bool))
	},
}

// modelOf returns the model for the operations of one owner, or of one id of it.
func modelOf(operations []porcupine.Operation) porcupine.Model {
	if len(operations) > 0 && ofSet(operations[0].Input.(input).kind) {
		return setModel
	}
	return model
}
