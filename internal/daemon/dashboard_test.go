package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// dashboard is what is looked at of a dashboard of Grafana's.
type dashboard struct {
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type string
			Definition string
			Datasource datasource
		}
	}
}

type panel struct {
	ID         int
	Title      string
	Type       string
	Datasource datasource
	Targets    []struct {
		Expr       string
		Datasource datasource
	}
	Panels []panel // of a row that is folded
}

type datasource struct{ UID string }

// TestDashboardShowsWhatIsExposed: the queries of docs/grafana/aweigh.json use
// names and labels that a node exposes, for the chosen nodes.
func TestDashboardShowsWhatIsExposed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/grafana/aweigh.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	labels := exposedLabels(t)

	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		query := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Definition)
		if query == nil {
			t.Errorf("variable %s: %q is not a query for values of a label", v.Name, v.Definition)
			continue
		}
		if !strings.Contains(query[1], "{") {
			query[1] += "{}" // the first of all asks all nodes
		}
		asks, problem := parseExpr(query[1])
		if problem != "" || len(asks) != 1 {
			t.Errorf("variable %s: %q: %s", v.Name, v.Definition, problem)
			continue
		}
		asks[0].labels = append(asks[0].labels, query[2])
		for _, offence := range asks[0].unknown(labels) {
			t.Errorf("variable %s: %s", v.Name, offence)
		}
		if v.Datasource.UID != "${datasource}" {
			t.Errorf("variable %s asks the data source %q", v.Name, v.Datasource.UID)
		}
	}

	ids, shown := make(map[int]bool), 0
	for _, p := range d.Panels {
		for _, p := range append([]panel{p}, p.Panels...) {
			if ids[p.ID] {
				t.Errorf("%s: another panel has the ID %d", p.Title, p.ID)
			}
			ids[p.ID] = true
			if p.Type == "row" {
				continue
			}
			if len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
				t.Errorf("%s asks nothing, or the data source %q", p.Title, p.Datasource.UID)
			}
			for _, x := range p.Targets {
				if x.Datasource.UID != "${datasource}" {
					t.Errorf("%s: %s asks the data source %q", p.Title, x.Expr, x.Datasource.UID)
				}
				asks, problem := parseExpr(x.Expr)
				if problem != "" {
					t.Errorf("%s: %s: %s", p.Title, x.Expr, problem)
				}
				for _, a := range asks {
					shown++
					for _, offence := range a.unknown(labels) {
						t.Errorf("%s: %s", p.Title, offence)
					}
					if !slices.Contains(a.matchers, `instance=~"$instance"`) {
						t.Errorf("%s: %s is of all nodes, not of those chosen", p.Title, a.metric)
					}
				}
			}
		}
	}
	if shown < 50 {
		t.Errorf("only %d metrics were found in the dashboard", shown)
	}
}

// exposedLabels are the labels of every sample that a node exposes, by its name,
// with those that Prometheus adds.
func exposedLabels(t *testing.T) map[string][]string {
	r := newRunning(t, 2)
	d := r.on[0]
	until(t, d.API(), "/readyz", http.StatusOK)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	families := scrape(t, d.API())
	for families["aweigh_anchor_clock_ahead_seconds"] == nil { // until another anchor led
		txn := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("/k"), Value: []byte("v")}}}
		if _, err := d.Node.Txn(ctx, txn, node.Once{}); err != nil {
			t.Fatal(err)
		}
		families = scrape(t, d.API())
	}
	labels := make(map[string][]string)
	for name, f := range families {
		own := []string{"instance", "job"}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				own = append(own, l.GetName())
			}
		}
		switch f.GetType() {
		case dto.MetricType_HISTOGRAM:
			labels[name+"_bucket"] = append(own[:len(own):len(own)], "le")
			labels[name+"_sum"], labels[name+"_count"] = own, own
		case dto.MetricType_SUMMARY:
			labels[name] = append(own[:len(own):len(own)], "quantile")
			labels[name+"_sum"], labels[name+"_count"] = own, own
		default:
			labels[name] = own
		}
	}
	return labels
}

// ask is a metric in an expression, with what is asked of its labels.
type ask struct {
	metric   string
	matchers []string // label, operator, value
	labels   []string // that the metric must have
}

// unknown reports what of it a node does not expose.
func (a ask) unknown(exposed map[string][]string) (offences []string) {
	labels, ok := exposed[a.metric]
	if !ok {
		return []string{fmt.Sprintf("no node exposes %s", a.metric)}
	}
	for _, l := range a.labels {
		if !slices.Contains(labels, l) {
			offences = append(offences, fmt.Sprintf("%s has no label %s", a.metric, l))
		}
	}
	return offences
}

var (
	exprWindow   = regexp.MustCompile(`\[[^\]]*\]`)
	exprGrouping = regexp.MustCompile(`\b(?:by|on|group_left|group_right) *\(([^)]*)\)`)
	exprSelector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*) *\{((?:[^}"]|"[^"]*")*)\}`)
	exprMatcher  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*) *(?:=~|!~|!=|=) *"[^"]*"`)
	exprName     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	exprFunction = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]* *\(`)
)

// parseExpr finds the metrics in an expression in the form that the dashboard uses:
// each with its matchers in braces, labels of groups and joins after the function's
// name. What it does not understand is a problem.
func parseExpr(expr string) (asks []ask, problem string) {
	rest := exprWindow.ReplaceAllString(expr, "")
	var grouped []string
	rest = exprGrouping.ReplaceAllStringFunc(rest, func(s string) string {
		grouped = append(grouped, exprName.FindAllString(exprGrouping.FindStringSubmatch(s)[1], -1)...)
		return ""
	})
	rest = exprSelector.ReplaceAllStringFunc(rest, func(s string) string {
		parts := exprSelector.FindStringSubmatch(s)
		a := ask{metric: parts[1], labels: slices.Clone(grouped)}
		for _, m := range exprMatcher.FindAllStringSubmatch(parts[2], -1) {
			a.matchers = append(a.matchers, m[0])
			a.labels = append(a.labels, m[1])
		}
		asks = append(asks, a)
		return ""
	})
	rest = exprFunction.ReplaceAllString(rest, "(")
	if names := exprName.FindAllString(rest, -1); names != nil {
		return asks, fmt.Sprintf("%q is neither a function nor a metric with braces", names)
	}
	if len(asks) == 0 {
		return nil, "no metric in it"
	}
	return asks, ""
}
