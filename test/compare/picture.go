package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

const pictureTitle = "Aweigh and others side by side"

// The measures of the picture, in pixels.
const (
	left     = 14.0
	panel    = 270.0 // from one column to the next
	barRoom  = 186.0 // the longest bar; its label stands to the right of it
	bar      = 14.0
	barStep  = 19.0
	rowHead  = 44.0
	rowSpace = 14.0
)

// pictureStyle follows the reader's scheme of colours, as the pages of the
// simulator do.
const pictureStyle = `<style>
.back{fill:#fff}.ink{fill:#1f2328}.soft{fill:#59636e}.axis{stroke:#8c959f}.mark{stroke:#1f2328}
.s0{fill:#8c959f}.s1{fill:#2da44e}.s2{fill:#1f6fc4}.s3{fill:#d4853b}.s4{fill:#96d8a8}.s5{fill:#8fb7e1}
@media (prefers-color-scheme:dark){.back{fill:#0d1117}.ink{fill:#e6edf3}.soft{fill:#9198a1}.axis{stroke:#656c76}.mark{stroke:#e6edf3}
.s0{fill:#768390}.s1{fill:#3fb950}.s2{fill:#4493f8}.s3{fill:#db9a57}.s4{fill:#245c33}.s5{fill:#254a78}}
</style>
`

// pictureRows are the measures shown, one below the other.
var pictureRows = []struct {
	title     string
	operation string
	metric    metric
}{
	{"puts per second (longer is better)", put, rate},
	{"p99 of a put, in ms (shorter is better)", put, p99},
	{"processor time of all members per put, in µs (shorter is better)", put, cpu},
	{"linearizable gets per second (longer is better)", get, rate},
}

// svg draws bars, a panel for each measure and number of clients, each with a
// scale of its own that starts at 0. Thin lines span least to most.
func (r *Report) svg() string {
	var b strings.Builder
	y := 62.0
	x := left
	for _, s := range r.Systems {
		fmt.Fprintf(&b, `<rect class="s%d" x="%s" y="34" width="11" height="11"/><text class="ink" x="%s" y="44">%s</text>`+"\n",
			colour(s.Name), place(x), place(x+16), html.EscapeString(s.Title))
		x += 34 + 6.6*float64(len(s.Title))
	}
	width := math.Max(left+panel*float64(len(r.Clients)), x)
	for _, row := range pictureRows {
		var systems []System
		for _, s := range r.Systems {
			if r.has(s.Name, row.operation) {
				systems = append(systems, s)
			}
		}
		if len(systems) == 0 {
			continue
		}
		fmt.Fprintf(&b, `<text class="ink" x="%s" y="%s" font-weight="bold">%s</text>`+"\n", place(left), place(y+16), row.title)
		for i, clients := range r.Clients {
			r.panel(&b, left+panel*float64(i), y+rowHead, row.metric, row.operation, clients, systems)
		}
		y += rowHead + barStep*float64(len(systems)) + rowSpace
	}
	about := fmt.Sprintf("%s. %s.", pictureTitle, r.Machine.text())
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]s %[2]s" width="%[1]s" height="%[2]s" role="img" aria-labelledby="t d" font-family="sans-serif" font-size="12">
<title id="t">%[3]s</title>
<desc id="d">%[4]s</desc>
%[5]s<rect class="back" width="%[1]s" height="%[2]s"/>
<text class="ink" x="%[6]s" y="22" font-size="15" font-weight="bold">%[3]s</text>
%[7]s</svg>
`, place(width), place(y+6), pictureTitle, html.EscapeString(about), pictureStyle, place(left), b.String())
}

// panel draws the bars of one number of clients.
func (r *Report) panel(b *strings.Builder, x, y float64, m metric, operation string, clients int, systems []System) {
	title := grouped(strconv.Itoa(clients)) + " clients"
	if clients == 1 {
		title = "1 client"
	}
	fmt.Fprintf(b, `<text class="soft" x="%s" y="%s">%s</text>`+"\n", place(x), place(y-8), title)
	most := 0.0
	for _, s := range systems {
		most = math.Max(most, r.span(m, s.Name, operation, clients).high)
	}
	for i, s := range systems {
		v := r.span(m, s.Name, operation, clients)
		top := y + barStep*float64(i)
		end := x
		if v.n > 0 && most > 0 {
			long := func(value float64) float64 { return barRoom * value / most }
			fmt.Fprintf(b, `<rect class="s%d" x="%s" y="%s" width="%s" height="%s"><title>%s: %s</title></rect>`+"\n",
				colour(s.Name), place(x), place(top), place(long(v.median)), place(bar), html.EscapeString(s.Title), v.text(number))
			end = x + long(v.high)
			if v.n > 1 {
				fmt.Fprintf(b, `<path class="mark" d="M%s %sH%s"/>`+"\n", place(x+long(v.low)), place(top+bar/2), place(end))
			}
		}
		label := "-"
		if v.n > 0 {
			label = number(v.median)
		}
		fmt.Fprintf(b, `<text class="ink" x="%s" y="%s">%s</text>`+"\n", place(end+5), place(top+11), label)
	}
	fmt.Fprintf(b, `<path class="axis" d="M%s %sV%s"/>`+"\n", place(x), place(y-3), place(y+barStep*float64(len(systems))-2))
}

// colour is the class of a system, the same in every picture.
func colour(name string) int {
	for i, p := range plans {
		if p.name == name {
			return i
		}
	}
	return 0
}

// place is a coordinate in tenths.
func place(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }
