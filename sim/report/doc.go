// Package report turns the results of simulated runs into one self-contained HTML
// file: Run shows one run, Study many, and Collect runs the worlds of a study.
//
// Figures are SVG drawn here. Nothing is loaded from elsewhere, no script is
// needed, and colours follow the reader's light or dark scheme. The same data
// gives the same bytes.
package report
