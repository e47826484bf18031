// Command requests does what a server does, at a fixed rate, and knows how much each of its five
// allocation sites allocates: the truth for what a profile and a log say of them.
//
//	requests -seconds 8 -truth truth.json -allocs allocs.pb.gz -heap heap.pb.gz
//	requests -off main.decode        the same load without what this site allocates
//	requests -pprof 127.0.0.1:6060   also serves net/http/pprof
//
// All sizes are size classes of Go's allocator, so that the counters hold what the heap gives.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"
)

// Size of a node of the live heap.
const nodeBytes = 64

type node struct {
	left, right *node
	rest        [nodeBytes - 16]byte
}

// order is 256 bytes, with pointers.
type order struct {
	customer *node
	lines    [31]*node
}

type session struct{ pages [2][]*node }

// handler serves one connection.
type handler struct {
	session   session
	allocated map[string]uint64
	sum       uint32

	orders  []*order
	body    []byte
	records [4]func() int
	keys    [32][]byte
}

var (
	live *node
	body = bytes.Repeat([]byte("x"), 10240)
	off  string
	// How much a request computes: 10 µs each.
	rounds int
)

func (h *handler) count(site string, bytes uint64) bool {
	if site == off {
		return false
	}
	h.allocated[site] += bytes
	return true
}

func tree(nodes int) *node {
	if nodes <= 0 {
		return nil
	}
	nodes--
	return &node{left: tree(nodes / 2), right: tree(nodes - nodes/2)}
}

// decode makes 64 orders of 256 bytes.
func decode(h *handler) {
	if !h.count("main.decode", 64*256) {
		return
	}
	var orders [64]*order
	for i := range orders {
		orders[i] = &order{customer: live}
	}
	h.orders = orders[:1:1]
}

// render copies the page. The copy is inlined, and so is the function that asks for it.
func render(h *handler) {
	if h.count("main.render", 10240) {
		h.body = page()
	}
}

func page() []byte { return bytes.Clone(body) }

// touch makes two pages of 4096 bytes.
func (s *session) touch(h *handler) {
	if !h.count("main.(*session).touch", 2*4096) {
		return
	}
	for i := range s.pages {
		s.pages[i] = make([]*node, 512)
	}
}

// audit makes four records of 1024 bytes, each in a closure of its own.
func audit(h *handler) {
	if !h.count("main.audit", 4*1024) {
		return
	}
	for i := range h.records {
		h.records[i] = record()
	}
}

func record() func() int {
	var fields [127]int
	fields[0] = len(body)
	// The function value and what it holds are one object of 1024 bytes.
	return func() int { return fields[0] }
}

// keys makes 32 keys of 64 bytes.
func keys(h *handler) {
	if !h.count("main.keys", 32*64) {
		return
	}
	for i := range h.keys {
		h.keys[i] = make([]byte, 64)
	}
}

// work allocates nothing, and takes most of the time of a request.
func (h *handler) work() {
	for range rounds {
		for _, b := range body {
			h.sum = h.sum*16777619 ^ uint32(b)
		}
	}
}

func (h *handler) handle() {
	decode(h)
	render(h)
	h.session.touch(h)
	audit(h)
	keys(h)
	h.work()
}

// serve handles as many requests per second as it is asked to, until stop is closed.
func (h *handler) serve(perSecond float64, stop chan struct{}) (done int) {
	tick, begin := time.NewTicker(5*time.Millisecond), time.Now()
	for {
		select {
		case <-stop:
			return done
		case <-tick.C:
		}
		// What late ticks missed is caught up, so that every run allocates at the same rate.
		for range 100 {
			if done >= int(time.Since(begin).Seconds()*perSecond) {
				break
			}
			h.handle()
			done++
		}
	}
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
	seconds := flag.Float64("seconds", 8, "how long to serve; 0: until a signal")
	perSecond := flag.Int("rate", 3000, "requests per second, of 40 KiB each")
	liveMiB := flag.Int("live", 32, "live heap in MiB")
	flag.IntVar(&rounds, "work", 30, "work of a request in addition to allocation, in 10 µs")
	flag.StringVar(&off, "off", "", "function that allocates nothing")
	truth := flag.String("truth", "", "file for the bytes that each function allocated")
	allocs := flag.String("allocs", "", "file for the allocs profile")
	heap := flag.String("heap", "", "file for the heap profile")
	address := flag.String("pprof", "", "address at which net/http/pprof is served")
	flag.Parse()

	if *address != "" {
		listener, err := net.Listen("tcp", *address)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		runtime.SetMutexProfileFraction(1)
		runtime.SetBlockProfileRate(1)
		fmt.Fprintf(os.Stderr, "profiles at http://%s/debug/pprof/\n", listener.Addr())
		go http.Serve(listener, nil)
	}
	live = tree(*liveMiB << 20 / nodeBytes)
	begin, done := time.Now(), 0
	stop := make(chan struct{})
	handlers := make([]*handler, 4)
	var all sync.WaitGroup
	var lock sync.Mutex
	for i := range handlers {
		h := &handler{allocated: map[string]uint64{}}
		handlers[i] = h
		all.Add(1)
		go func() {
			defer all.Done()
			served := h.serve(float64(*perSecond)/float64(len(handlers)), stop)
			lock.Lock()
			done += served
			lock.Unlock()
		}()
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	var end <-chan time.Time
	if *seconds > 0 {
		end = time.After(time.Duration(*seconds * float64(time.Second)))
	}
	select {
	case <-asked:
	case <-end:
	}
	close(stop)
	all.Wait()
	wall := time.Since(begin).Seconds()
	write("allocs", *allocs)
	write("heap", *heap)
	if *truth != "" {
		allocated := map[string]uint64{"main.tree": uint64(*liveMiB) << 20}
		for _, h := range handlers {
			for site, bytes := range h.allocated {
				allocated[site] += bytes
			}
		}
		text, _ := json.MarshalIndent(map[string]any{
			"requests": done, "wall_s": wall, "off": off, "allocated_bytes": allocated,
		}, "", " ")
		os.WriteFile(*truth, append(text, '\n'), 0o644)
	}
	runtime.KeepAlive(live)
}
