package cosmosemu

import "strconv"

// Request charges of reads and writes of items follow the table of Microsoft Learn,
// "Understand request unit consumption". All others are estimates. They have the service's
// order of magnitude and grow with size, which is enough to test code that reads them.

// itemCharge is the charge of a read or a write of an item of this size.
type itemCharge struct{ kilobytes, read, write float64 }

// itemCharges is the table.
var itemCharges = []itemCharge{
	{1, 1.00, 4.95},
	{2, 1.04, 6.29},
	{4, 1.14, 6.67},
	{8, 1.33, 7.04},
	{16, 1.67, 9.52},
	{32, 2.19, 11.23},
	{64, 4.76, 22.67},
	{128, 9.95, 48.19},
	{256, 20.28, 98.29},
	{512, 40.95, 184.57},
	{1024, 145.90, 625},
	{2048, 291.80, 1250},
}

// chargeOf interpolates between the rows of the table. Smaller items cost as much as the
// first row, larger ones as the last.
func chargeOf(size int) itemCharge {
	low := itemCharges[0]
	kb := max(float64(size)/1024, low.kilobytes)
	for _, high := range itemCharges[1:] {
		if kb <= high.kilobytes {
			part := (kb - low.kilobytes) / (high.kilobytes - low.kilobytes)
			return itemCharge{kb, low.read + part*(high.read-low.read), low.write + part*(high.write-low.write)}
		}
		low = high
	}
	return low
}

func readCharge(size int) float64 { return chargeOf(size).read }

func writeCharge(size int) float64 { return chargeOf(size).write }

// deleteCharge is that of the smallest write, because the table has no deletions.
const deleteCharge = 4.95

func kilobytes(size int) float64 { return float64((size + 1023) / 1024) }

func feedCharge(count, size int) float64 { return 1 + 0.05*float64(count) + 0.2*kilobytes(size) }

// errorCharge is that of a refused request.
const errorCharge = 1

const metadataCharge = 1

// formatCharge writes a charge with at most two decimals.
func formatCharge(charge float64) string {
	var buf [24]byte
	return string(appendCharge(buf[:0], charge))
}

func appendCharge(dst []byte, charge float64) []byte {
	hundredths := int64(charge*100 + 0.5)
	dst = strconv.AppendInt(dst, hundredths/100, 10)
	tenths, last := byte(hundredths/10%10), byte(hundredths%10)
	if tenths != 0 || last != 0 {
		dst = append(dst, '.', '0'+tenths)
	}
	if last != 0 {
		dst = append(dst, '0'+last)
	}
	return dst
}
