package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// markdown is the report for documents: how it was measured, values, ratios.
func (r *Report) markdown(picture string) string {
	var b strings.Builder
	b.WriteString(r.about())
	if picture != "" {
		fmt.Fprintf(&b, "![%s](%s)\n\n", pictureTitle, picture)
	}
	for _, o := range titles {
		rows := [][]string{{"clients", "system", rate.name, p50.name, p99.name, cpu.name, syncs.name}}
		for _, clients := range r.crowds(o.operation) {
			for _, s := range r.Systems {
				if !r.has(s.Name, o.operation) {
					continue
				}
				row := []string{grouped(strconv.Itoa(clients)), s.Title}
				for _, m := range []metric{rate, p50, p99, cpu, syncs} {
					row = append(row, r.span(m, s.Name, o.operation, clients).text(number))
				}
				rows = append(rows, row)
			}
		}
		if len(rows) > 1 {
			fmt.Fprintf(&b, "%s:\n\n%s\n", o.title, aligned(rows))
		}
	}
	if table := r.ratios(); table != "" {
		fmt.Fprintf(&b, "As multiples of etcd in the same repetition:\n\n%s\n", table)
	}
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "* %s\n", note)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// about reports where, when, and how.
func (r *Report) about() string {
	repetitions := "one repetition"
	if r.Repetitions > 1 {
		repetitions = fmt.Sprintf("%d repetitions, interleaved; median (least–most)", r.Repetitions)
	}
	clients := "all clients on one member (etcd: the leader)"
	if r.Spread {
		clients = "clients spread over all members (CometBFT: on one)"
	}
	generators := "each system's load generator runs beside them"
	if r.Tool == toolEtcd {
		generators = "etcd's load generator runs beside them, against the etcd API of all"
	}
	return fmt.Sprintf("Measured on %s.\n\n    %s\n\n"+
		"Values of %d bytes, %d random keys; gets read one key. Every member is a process of its own and syncs to the same disk, "+
		"%s; %s, on at most %d connections; %g s a cell; %s. "+
		"CPU and syncs are summed over the members.\n\n",
		r.Machine.text(), r.Command, valueSize, keySpace, generators, clients, r.Connections, r.Seconds, repetitions)
}

// ratios is empty without a baseline and something to compare it with.
func (r *Report) ratios() string {
	rows := [][]string{{"operation", "clients", "system", rate.name, p50.name, p99.name, cpu.name, syncs.name}}
	for _, o := range titles {
		operation := o.operation
		for _, clients := range r.crowds(operation) {
			for _, s := range r.Systems {
				if s.Name == baseline || r.ratio(rate, s.Name, operation, clients).n == 0 {
					continue
				}
				row := []string{operation, grouped(strconv.Itoa(clients)), s.Title}
				for _, m := range []metric{rate, p50, p99, cpu, syncs} {
					row = append(row, r.ratio(m, s.Name, operation, clients).text(number))
				}
				rows = append(rows, row)
			}
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return aligned(rows)
}

// disturbing is what other programs may use of the processors before a reader is told.
const disturbing = .1

// notes are what a reader of the numbers must know besides.
func (r *Report) notes() (notes []string) {
	disturbed, most := 0, 0.0
	for _, s := range r.Samples {
		if s.Others != nil && *s.Others > disturbing {
			disturbed, most = disturbed+1, math.Max(most, *s.Others)
		}
	}
	if disturbed > 0 {
		notes = append(notes, fmt.Sprintf("Disturbed: in %d of %d cells other programs used more than %.0f %% of the processors, up to %.0f %%.",
			disturbed, len(r.Samples), 100*disturbing, 100*most))
	}
	for _, s := range r.Samples {
		where := fmt.Sprintf("%s, %s, %d clients, repetition %d", s.System, s.Operation, s.Clients, s.Repetition)
		if s.Failure != "" {
			notes = append(notes, fmt.Sprintf("Failed: %s: %s", where, s.Failure))
		}
		if s.Errors > 0 {
			notes = append(notes, fmt.Sprintf("Errors: %s: %d, besides %d done", where, s.Errors, s.Done))
		}
	}
	for _, s := range r.Skipped {
		notes = append(notes, "Skipped: "+s)
	}
	return notes
}

// text is the median, with the range if there is one; "-" for nothing.
func (s span) text(format func(float64) string) string {
	switch {
	case s.n == 0:
		return "-"
	case s.n == 1:
		return format(s.median)
	}
	return fmt.Sprintf("%s (%s–%s)", format(s.median), format(s.low), format(s.high))
}

// number has three digits or, from a hundred on, all before the point, in groups.
func number(x float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 2, 64), 64)
	if err != nil || rounded >= 100 || rounded <= 0 {
		return grouped(strconv.FormatFloat(x, 'f', 0, 64))
	}
	digits := 2 - int(math.Floor(math.Log10(rounded)+1e-9))
	return strconv.FormatFloat(rounded, 'f', min(digits, 4), 64)
}

// grouped puts commas between groups of three digits.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// aligned is a Markdown table whose columns line up in a terminal, too.
func aligned(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(&b, "| %s%s ", cell, strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString("|\n")
		if n == 0 {
			for _, w := range widths {
				b.WriteString("|" + strings.Repeat("-", w+2))
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}
