// Reads a dashboard with the types that Grafana generates from its schema. A field that the schema
// does not have, or one that is missing, is an error.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func main() {
	// Those that the dashboard has; to compile all would take most of a minute.
	types := cog.NewRuntime()
	types.RegisterPanelcfgVariant(stat.VariantConfig())
	types.RegisterPanelcfgVariant(timeseries.VariantConfig())
	types.RegisterDataqueryVariant(prometheus.VariantConfig())
	data, err := os.ReadFile(os.Args[1])
	check(err)
	var read dashboard.Dashboard
	check(read.UnmarshalJSONStrict(data))
	check(read.Validate())
	fmt.Printf("schema %d, %d panels\n", read.SchemaVersion, len(read.Panels))
}

// An empty list of errors is not nil.
func check(err error) {
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
