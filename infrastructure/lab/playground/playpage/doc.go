// Package playpage is the page of the playground, a section of package page: buttons that
// inject faults, the verdict, and the latency.
package playpage
