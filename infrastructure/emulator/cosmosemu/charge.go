package cosmosemu

import "strconv"

// Request charges are estimates. They have the service's order of magnitude and grow with
// size, which is enough to test code that reads them.

func kilobytes(size int) float64 { return float64((size + 1023) / 1024) }

func readCharge(size int) float64 { return max(1, kilobytes(size)) }

func writeCharge(size int) float64 { return 5.24 + max(1, kilobytes(size)) }

const deleteCharge = 6.24

func feedCharge(count, size int) float64 { return 1 + 0.05*float64(count) + 0.2*kilobytes(size) }

const metadataCharge = 1

// formatCharge writes a charge with at most two decimals.
func formatCharge(charge float64) string {
	hundredths := int64(charge*100 + 0.5)
	if hundredths%100 == 0 {
		return strconv.FormatInt(hundredths/100, 10)
	}
	return strconv.FormatFloat(float64(hundredths)/100, 'f', -1, 64)
}
