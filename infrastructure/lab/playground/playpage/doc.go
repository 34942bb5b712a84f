// Package playpage is the page of the playground: buttons that do harm, the verdict, and
// what became of the latency, as a section of package page.
package playpage
