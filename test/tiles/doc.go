// Package tiles reads the files of "aweigh tiles" with programs of others: the checker of Tessera, which is a
// transparency log itself, and the witness of transparency-dev, which signs them.
package tiles
