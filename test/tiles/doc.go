// Package tiles reads the files of "aweigh tiles" with programs of others: the checker of Tessera, which is a
// transparency log itself.
package tiles
