//go:build !faults

package pairs

const everyPair = false // see eachPair
