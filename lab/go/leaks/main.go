// Command leaks is a server with one of six leaks. It writes two heap profiles, an early and a
// late one, and a goroutine profile at the end.
//
//	leaks -leak sessions -seconds 75 -folder .
//
// In addition to the leak it has a large live heap that does not grow, and garbage.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"
)

type leak struct {
	request  func(number int)
	perTick  int
	function string
}

// leaks by name; the function is the one to change.
var leaks = map[string]leak{
	"sessions":  {openSession, 6, "main.(*sessions).open"},
	"substring": {index, 1, "main.readDocument"},
	"goroutine": {health, 1, "main.check.func1"},
	"timer":     {allow, 40, "main.(*limiter).allow"},
	"cache":     {query, 3, "main.(*cache).put"},
	"finalizer": {write, 2, "main.newWriter"},
}

// A map that only grows: whoever ends a session forgets to delete it
// (stacklok/toolhive pull request 4079).
type session struct {
	id      string
	started time.Time
	state   [960]byte
}

type sessions struct {
	sync.Mutex
	byID map[string]*session
}

var active = sessions{byID: map[string]*session{}}

func (s *sessions) open(id string) *session {
	s.Lock()
	defer s.Unlock()
	s.byID[id] = &session{id: id, started: time.Now()}
	return s.byID[id]
}

func openSession(number int) {
	active.open(fmt.Sprintf("session-%d", number))
}

// A few bytes of a large text keep all of it (betterleaks/betterleaks pull request 308).
var titles []string

func readDocument(number int) string {
	var text strings.Builder
	text.Grow(8 << 10)
	fmt.Fprintf(&text, "title %d\n", number)
	for text.Len() < 4<<10 {
		text.WriteString("the rest of the document ")
	}
	return text.String()
}

func index(number int) {
	title, _, _ := strings.Cut(readDocument(number), "\n")
	titles = append(titles, title)
}

// A goroutine that sends to a channel nobody receives from any more, because the caller gave up
// (hellofresh/health-go issue 224).
func check(timeout time.Duration) bool {
	result := make(chan []byte)
	go func() {
		answer := make([]byte, 4096)
		time.Sleep(2 * timeout)
		result <- answer
	}()
	select {
	case <-result:
		return true
	case <-time.After(timeout):
		return false
	}
}

func health(int) { go check(5 * time.Millisecond) }

// Timers that end much later than what they are for (jellydator/ttlcache pull request 18).
type limiter struct{ recent sync.Map }

var requests limiter

func (l *limiter) allow(client int) {
	l.recent.Store(client%64, client)
	time.AfterFunc(time.Hour, func() { l.recent.Delete(client % 64) })
}

func allow(number int) { requests.allow(number) }

// A cache without eviction, whose keys never come again (SigNoz/signoz pull request 10967).
type cache struct{ pages map[string][]byte }

var results = cache{map[string][]byte{}}

func (c *cache) put(key string, page []byte) {
	c.pages[key] = bytes.Clone(page)
}

func query(number int) {
	page := bytes.Repeat([]byte("<tr><td>"), 256)
	results.put(fmt.Sprintf("from=%d&to=%d", number, number+60), page)
}

// Objects with a finalizer that refer to each other are never freed
// (milvus-io/milvus issue 15098).
type writer struct {
	codec  *codec
	buffer []byte
}

type codec struct{ writer *writer }

func newWriter() *writer {
	w := &writer{buffer: make([]byte, 4096)}
	w.codec = &codec{w}
	runtime.SetFinalizer(w, func(w *writer) { w.buffer = nil })
	return w
}

func write(number int) {
	w := newWriter()
	w.buffer[0] = byte(number)
}

// What does not leak: a large catalog, and the garbage of every request.
type entry struct {
	next *entry
	text [112]byte
}

var (
	catalog *entry
	garbage []byte
)

func loadCatalog(mib int) {
	for range mib << 20 / 128 {
		catalog = &entry{next: catalog}
	}
}

func serve() {
	for range 48 {
		garbage = make([]byte, 8192)
	}
}

func profile(name, path string) {
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
	name := flag.String("leak", "", "sessions, substring, goroutine, timer, cache or finalizer")
	seconds := flag.Float64("seconds", 75, "how long to serve")
	folder := flag.String("folder", ".", "where the profiles are written")
	function := flag.Bool("function", false, "only print the function that leaks")
	flag.Parse()
	chosen, known := leaks[*name]
	if !known {
		fmt.Fprintln(os.Stderr, "no such leak:", *name)
		os.Exit(2)
	}
	if *function {
		fmt.Println(chosen.function)
		return
	}
	loadCatalog(12)
	begin, number, early := time.Now(), 0, false
	for range time.Tick(10 * time.Millisecond) {
		serve()
		for range chosen.perTick {
			chosen.request(number)
			number++
		}
		passed := time.Since(begin).Seconds()
		if !early && passed > *seconds/4 {
			early = true
			profile("heap", filepath.Join(*folder, "heap-early.pb.gz"))
		}
		if passed > *seconds {
			break
		}
	}
	profile("heap", filepath.Join(*folder, "heap-late.pb.gz"))
	profile("goroutine", filepath.Join(*folder, "goroutine.pb.gz"))
	runtime.KeepAlive(catalog)
}
