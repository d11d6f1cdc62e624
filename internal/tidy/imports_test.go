package tidy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestImportsPointDown(t *testing.T) {
	holds(t, importsPointDown)
	finds(t, importsPointDown, map[string]string{
		"aweigh.go":          `package aweigh; import _ "github.com/aweigh/aweigh/kv"`,
		"p2p/p2p.go":         `package p2p; import (_ "fmt"; _ "github.com/aweigh/aweigh"; _ "github.com/aweigh/aweigh/votes")`,
		"quorum/model/m.go":  `package model; import _ "github.com/aweigh/aweigh/quorum"`,
		"quorum/q.go":        `package quorum; import _ "github.com/aweigh/aweigh/internal/testnet"`,
		"scope/scope.go":     `package scope; import _ "github.com/aweigh/aweigh/quorum/model"`,
		"store/s_test.go":    `package store; import _ "github.com/aweigh/aweigh/node"`,
		"surprise/new.go":    `package surprise`,
		"cmd/aweigh/main.go": `package main; import _ "github.com/aweigh/aweigh/sim"`,
	},
		"aweigh.go imports kv: the shared vocabulary",
		"p2p/p2p.go imports votes: it moves frames",
		"quorum/q.go imports internal/testnet",
		"surprise/new.go: no row",
	)
}

// TestRowsCoverPackages: a row for a folder that does not exist would permit what no reviewer saw.
func TestRowsCoverPackages(t *testing.T) {
	repo, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range directions {
		if !slices.ContainsFunc(repo.files, func(f *file) bool { return f.syntax != nil && within(f.folder(), d.folder) }) {
			t.Errorf("directions has a row for %q, where there is no package", d.folder)
		}
	}
}

// importsPointDown holds every import of this module against directions.
func importsPointDown(t *tree) (offences []string) {
	for _, f := range t.files {
		if f.syntax == nil || f.test() {
			continue
		}
		row, longest := -1, -1
		for i, d := range directions {
			if within(f.folder(), d.folder) && len(d.folder) > longest {
				row, longest = i, len(d.folder)
			}
		}
		if row < 0 {
			offences = append(offences, f.path+": no row in directions covers its package")
			continue
		}
		rule := directions[row]
		for _, spec := range f.syntax.Imports {
			target, _ := strconv.Unquote(spec.Path.Value)
			if target != module && !strings.HasPrefix(target, module+"/") {
				continue
			}
			target = strings.TrimPrefix(strings.TrimPrefix(target, module), "/")
			if rule.folder != "" && within(target, rule.folder) {
				continue
			}
			if !slices.ContainsFunc(rule.may, func(p string) bool { return within(target, p) }) {
				offences = append(offences, fmt.Sprintf("%s imports %s: %s", f.path, target, rule.reason))
			}
		}
	}
	return offences
}
