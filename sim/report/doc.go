// Package report turns what came of simulated runs into one self-contained HTML
// file: Run tells of one run, Study of many, and Collect runs what a study needs.
//
// Figures are SVG drawn here. Nothing is loaded from elsewhere, no script is
// needed, and colours follow the reader's light or dark scheme. The same data
// gives the same bytes.
package report
