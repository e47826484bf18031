// Command ledger is a batch program: four workers read, group, sort and write a fixed number of
// records as fast as they can. It knows how much each of its allocation sites allocates.
//
//	ledger -records 60000 -truth truth.json -allocs allocs.pb.gz -heap heap.pb.gz
//	ledger -off main.sorted          the same records without what this site allocates
//
// All sizes are size classes of Go's allocator, so that the counters hold what the heap gives.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"
)

type account struct {
	left, right *account
	rest        [48]byte
}

// row is 512 bytes, with pointers.
type row struct {
	accounts [62]*account
	number   [2]uint64
}

type worker struct {
	allocated map[string]uint64
	amounts   []uint64
	rows      []*row
	text      string
	group     map[uint64][]uint64
	sum       uint32
}

var (
	off  string
	book *account
)

func (w *worker) count(site string, bytes uint64) bool {
	if site == off {
		return false
	}
	w.allocated[site] += bytes
	return true
}

// parse makes 24 rows of 512 bytes.
func (w *worker) parse(number uint64) {
	if !w.count("main.(*worker).parse", 24*512) {
		return
	}
	for i := range w.rows {
		w.rows[i] = &row{number: [2]uint64{number, uint64(i)}}
		w.rows[i].accounts[0] = book
	}
}

// sorted makes a sorted copy of 1024 amounts: 8192 bytes.
func (w *worker) sorted() {
	if !w.count("main.(*worker).sorted", 8192) {
		return
	}
	copied := slices.Clone(w.amounts)
	// Only the first ones are out of order: sorting all would take most of the time.
	slices.Sort(copied[:64])
	w.sum ^= uint32(copied[0])
}

// render makes a text of 6144 bytes.
func (w *worker) render() {
	if !w.count("main.(*worker).render", 6144) {
		return
	}
	var text strings.Builder
	text.Grow(6144)
	for text.Len() < 512 {
		text.WriteString("2026-11-20 debit 0.00 ")
	}
	w.text = text.String()
}

// regroup makes two lists of 1024 bytes.
func (w *worker) regroup(number uint64) {
	if !w.count("main.(*worker).regroup", 2*1024) {
		return
	}
	for half := range uint64(2) {
		w.group[half] = make([]uint64, 128)
		w.group[half][0] = number
	}
}

func (w *worker) do(number uint64) {
	w.amounts[number%64] = number * 2654435761 % 1000003
	w.parse(number)
	w.sorted()
	w.render()
	w.regroup(number)
	w.sum ^= crc32.ChecksumIEEE([]byte(w.text[:0]))
	// Work that allocates nothing: most of the time.
	for range 96 {
		for _, amount := range w.amounts {
			w.sum = w.sum*16777619 ^ uint32(amount)
		}
	}
}

func newWorker() *worker {
	return &worker{
		allocated: map[string]uint64{}, amounts: make([]uint64, 1024),
		rows: make([]*row, 24), group: map[uint64][]uint64{},
	}
}

func open(accounts int) *account {
	if accounts <= 0 {
		return nil
	}
	accounts--
	return &account{left: open(accounts / 2), right: open(accounts - accounts/2)}
}

func write(name, path string) {
	if path == "" {
		return
	}
	file, err := os.Create(path)
	if err == nil {
		err = pprof.Lookup(name).WriteTo(file, 0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	file.Close()
}

func main() {
	records := flag.Int("records", 60000, "records, of 28 KiB each")
	liveMiB := flag.Int("live", 40, "live heap in MiB")
	flag.StringVar(&off, "off", "", "function that allocates nothing")
	truth := flag.String("truth", "", "file for the bytes that each function allocated")
	allocs := flag.String("allocs", "", "file for the allocs profile")
	heap := flag.String("heap", "", "file for the heap profile")
	flag.Parse()

	begin := time.Now()
	book = open(*liveMiB << 20 / 64)
	workers := make([]*worker, 4)
	var all sync.WaitGroup
	for i := range workers {
		w := newWorker()
		workers[i] = w
		all.Add(1)
		go func() {
			defer all.Done()
			for number := range *records / len(workers) {
				w.do(uint64(number))
			}
		}()
	}
	all.Wait()
	wall := time.Since(begin).Seconds()
	write("allocs", *allocs)
	write("heap", *heap)
	if *truth != "" {
		allocated := map[string]uint64{"main.open": uint64(*liveMiB) << 20}
		for _, w := range workers {
			for site, bytes := range w.allocated {
				allocated[site] += bytes
			}
		}
		text, _ := json.MarshalIndent(map[string]any{
			"records": *records, "wall_s": wall, "off": off, "allocated_bytes": allocated,
		}, "", " ")
		os.WriteFile(*truth, append(text, '\n'), 0o644)
	}
	runtime.KeepAlive(book)
}
