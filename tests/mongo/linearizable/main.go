// linearizable checks histories of arrays, and of sets, with Porcupine.
//
//	linearizable [-seconds N] [-html FOLDER] FILE...
//
// The files are logs of tests/mongo/history.h, all of one run. Each owner's array is checked
// separately: is there an order of its operations, each at some moment between its call and its
// answer, in which a plain list would have given the same answers? For an array that keeps each id
// once it asks that of each id, with a plain set. It prints the owners that have no such order. With -html it also writes a page that shows the longest partial order. Exit codes: 0
// all owners are linearizable, 1 one is not, 2 a file cannot be read, 3 an owner takes longer than N
// seconds.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

func main() {
	seconds := flag.Int("seconds", 60, "longest time for one owner")
	html := flag.String("html", "", "folder for pages that show what is not linearizable")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "linearizable: no files")
		os.Exit(2)
	}
	h := newHistory()
	for _, path := range flag.Args() {
		if err := h.readFile(path); err != nil {
			fmt.Fprintln(os.Stderr, "linearizable:", err)
			os.Exit(2)
		}
	}
	sort.Strings(h.owners)
	began := time.Now()
	operations, illegal, undecided := 0, 0, 0
	for _, owner := range h.owners {
		all := h.operations(owner)
		operations += len(all)
		switch porcupine.CheckOperationsTimeout(modelOf(all), all, time.Duration(*seconds)*time.Second) {
		case porcupine.Illegal:
			illegal++
			explain(owner, all, *html)
		case porcupine.Unknown:
			undecided++
			fmt.Printf("%s: not decided in %d s (%d operations)\n", owner, *seconds, len(all))
		}
	}
	fmt.Printf("%d operations on %d owners: %d owners not linearizable, %d not decided; %.1f s\n",
		operations, len(h.owners), illegal, undecided, time.Since(began).Seconds())
	if illegal > 0 {
		os.Exit(1)
	}
	if undecided > 0 {
		os.Exit(3)
	}
}

// explain prints where the longest partial order ends, and which operations do not fit after it.
func explain(owner string, all []porcupine.Operation, html string) {
	fmt.Printf("%s: not linearizable (%d operations)\n", owner, len(all))
	model := modelOf(all)
	_, info := porcupine.CheckOperationsVerbose(model, all, 10*time.Second)
	var longest []porcupine.Operation
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	state, placed := model.Init(), map[string]bool{}
	for _, operation := range longest {
		_, state = model.Step(state, operation.Input, operation.Output)
		placed[line(operation)] = true
	}
	fmt.Printf("  an order of %d: %s\n", len(longest), model.DescribeState(state))
	sort.Slice(all, func(i, j int) bool { return all[i].Return < all[j].Return })
	printed := 0
	for _, operation := range all {
		if !placed[line(operation)] && printed < 10 {
			fmt.Println("  does not fit:", line(operation))
			printed++
		}
	}
	if html != "" {
		path := filepath.Join(html, strings.ReplaceAll(owner, "/", "-")+".html")
		if err := porcupine.VisualizePath(model, info, path); err != nil {
			fmt.Fprintln(os.Stderr, "linearizable:", err)
		} else {
			fmt.Println("  see", path)
		}
	}
}

func line(operation porcupine.Operation) string {
	return fmt.Sprintf("%d..%d worker %d: %s", operation.Call, operation.Return,
		operation.ClientId, describe(operation.Input.(input), operation.Output.(output)))
}
