// Command foreign writes profiles that are valid and are not Go's memory profiles, each into a
// file of the folder it is given: what Java's converters write, and a profile without samples.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/pprof/profile"
)

type sampleType struct{ kind, unit string }

func made(types []sampleType, mapping string, stacks [][]string, values [][]int64) *profile.Profile {
	p := &profile.Profile{
		TimeNanos:     time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC).UnixNano(),
		DurationNanos: int64(30 * time.Second),
		PeriodType:    &profile.ValueType{Type: types[0].kind, Unit: types[0].unit},
		Period:        524288,
	}
	for _, t := range types {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: t.kind, Unit: t.unit})
	}
	if mapping != "" {
		p.Mapping = []*profile.Mapping{{ID: 1, File: mapping, HasFunctions: true}}
	}
	locations := map[string]*profile.Location{}
	for i, stack := range stacks {
		sample := &profile.Sample{Value: values[i]}
		for _, name := range stack {
			location := locations[name]
			if location == nil {
				function := &profile.Function{
					ID: uint64(len(p.Function) + 1), Name: name, SystemName: name,
				}
				location = &profile.Location{
					ID:   uint64(len(p.Location) + 1),
					Line: []profile.Line{{Function: function, Line: int64(10 * len(p.Function))}},
				}
				p.Function, p.Location = append(p.Function, function), append(p.Location, location)
				locations[name] = location
			}
			sample.Location = append(sample.Location, location)
		}
		p.Sample = append(p.Sample, sample)
	}
	return p
}

func main() {
	// Leaf first, as in every profile.proto.
	java := [][]string{
		{"java.util.Arrays.copyOf", "com.example.orders.Decoder.decode", "java.lang.Thread.run"},
		{"com.example.orders.Page.render", "com.example.orders.Server.handle", "java.lang.Thread.run"},
	}
	flight := [][]string{
		{"java/util/Arrays.copyOf", "com/example/orders/Decoder.decode", "java/lang/Thread.run"},
		{"com/example/orders/Page.render", "com/example/orders/Server.handle", "java/lang/Thread.run"},
	}
	native := [][]string{{"__libc_malloc", "serve_request", "main"}, {"operator new", "render", "main"}}
	two := [][]int64{{700, 41943040}, {300, 20971520}}
	objects := []sampleType{{"alloc_objects", "count"}, {"alloc_space", "bytes"}}
	profiles := map[string]*profile.Profile{
		// As the names of Go's own sample types, with the frames of another language.
		"java-allocations.pb.gz": made(objects, "", java, two),
		"java-flight-recorder.pb.gz": made(
			[]sampleType{{"alloc_in_new_tlab_objects", "count"}, {"alloc_in_new_tlab_bytes", "bytes"}},
			"", flight, two),
		"native-malloc.pb.gz": made(
			[]sampleType{{"objects", "count"}, {"space", "bytes"}}, "/usr/bin/serverd", native, two),
		"without-samples.pb.gz": made([]sampleType{
			{"alloc_objects", "count"}, {"alloc_space", "bytes"},
			{"inuse_objects", "count"}, {"inuse_space", "bytes"},
		}, "/usr/local/bin/server", nil, nil),
	}
	for name, p := range profiles {
		file, err := os.Create(filepath.Join(os.Args[1], name))
		if err == nil {
			err = p.Write(file)
		}
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
