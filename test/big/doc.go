// Package big holds a test with as many keys as one likes: a fresh observer, in a
// process of its own, reaches the head of their scope by a snapshot from several
// nodes, through a kill and the end of one of them.
package big
