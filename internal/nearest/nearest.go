// Package nearest finds the name that a misspelt one may stand for.
package nearest

import "github.com/agnivade/levenshtein"

// Name returns the known name that takes the fewest letters to insert, delete or replace, the first of equal ones, and
// how many. It returns "" if none takes at most the given number.
func Name(name string, known []string, most int) (near string, letters int) {
	letters = most + 1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(name, k); d < letters {
			near, letters = k, d
		}
	}
	return near, letters
}
