package plan

import (
	"fmt"
	"strings"
)

// Figure is a price, a limit or a measurement with its source.
type Figure struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Source is an address, or a document of this repository.
	Source string `json:"source"`
	// Date is the date of the page, or the day it was read if it has none.
	Date string `json:"date"`
	// Assumed means that no page of the vendor confirms the value.
	Assumed bool `json:"assumed,omitempty"`
}

// String returns the figure with its source, * if it is assumed.
func (f *Figure) String() string {
	star := ""
	if f.Assumed {
		star = "*"
	}
	return strings.TrimSpace(fmt.Sprintf("%s%s %s", number(f.Value), star, f.Unit)) + fmt.Sprintf(" %s: %s (%s)", f.What, f.Source, f.Date)
}

const (
	cosmosDocs = "https://learn.microsoft.com/azure/cosmos-db/"
	busDocs    = "https://learn.microsoft.com/azure/service-bus-messaging/"
	ownDocs    = "bicep/README.md"
)

// The figures. Prices are list prices of US regions in US dollars.
var (
	partitionRate     = figure("throughput of a physical partition, and of a partition key", 10_000, "RU/s", cosmosDocs+"partitioning-overview", "2022-03-24")
	partitionStorage  = figure("storage of a physical partition", 50, "GB", cosmosDocs+"partitioning-overview", "2022-03-24")
	keyStorage        = figure("storage of a partition key", 20, "GB", cosmosDocs+"concepts-limits", "read 2026-11-27")
	containerRate     = figure("throughput of a container without a support request", 1_000_000, "RU/s", cosmosDocs+"concepts-limits", "read 2026-11-27")
	storageRate       = figure("lowest throughput for each GB stored", 1, "RU/s", cosmosDocs+"concepts-limits", "read 2026-11-27")
	autoscaleFloor    = figure("lowest autoscale throughput, as a part of the highest", 0.1, "", cosmosDocs+"how-to-choose-offer", "2024-07-26")
	autoscaleLowest   = figure("lowest maximum of autoscale throughput", 1_000, "RU/s", cosmosDocs+"autoscale-faq", "read 2026-11-27")
	readLatency       = figure("duration of a read, 99th percentile", 10, "ms", cosmosDocs+"introduction", "2018-04-08")
	throughputPrice   = figure("100 RU/s for an hour, manual, one region", 0.008, "USD", cosmosDocs+"understand-your-bill", "2022-03-31")
	autoscaleFactor   = figure("price of autoscale divided by manual throughput", 1.5, "", cosmosDocs+"how-to-choose-offer", "2024-07-26")
	storagePrice      = figure("a GB stored for a month, one region", 0.25, "USD", cosmosDocs+"understand-your-bill", "2022-03-31")
	unitRate          = figure("throughput of a messaging unit, each way", 4, "MB/s", busDocs+"service-bus-performance-improvements", "2023-06-30")
	unitsOfPartition  = figure("messaging units of a Premium namespace, or of a partition of it", 16, "", busDocs+"service-bus-premium-messaging", "2021-11-08")
	namespaceSections = figure("partitions of a Premium namespace", 4, "", "https://learn.microsoft.com/dotnet/api/azure.resourcemanager.servicebus.models.servicebussku.capacity", "read 2026-11-27")
	standardCredits   = figure("credits of a Standard namespace", 1_000, "/s", busDocs+"service-bus-throttling", "2024-03-19")
	standardMessage   = figure("size of a message in a Standard namespace", 256, "KB", busDocs+"service-bus-quotas", "2022-07-19")
	topicStorage      = figure("storage of a topic in a Premium namespace", 80, "GB", busDocs+"service-bus-quotas", "2022-07-19")
	unitPrice         = assumed("a messaging unit for an hour", 0.9275, "USD", "https://azure.microsoft.com/pricing/details/service-bus/", "read 2026-11-27 without a price")
	cpuPrice          = assumed("a vCPU for a second, active", 0.000024, "USD", ownDocs, "2025")
	memoryPrice       = assumed("a GiB of memory for a second, active", 0.000003, "USD", ownDocs, "2025")
	readCost          = figure("read of a document of 1 KB; larger ones by the table", 1, "RU", cosmosDocs+"understand-request-unit-consumption", "read 2026-11-27")
	writeCost         = figure("write of a document of 1 KB; larger ones by the table", 4.95, "RU", cosmosDocs+"understand-request-unit-consumption", "read 2026-11-27")
	feedCost          = assumed("read of the change feed, and 0.05 for each document and 0.2 for each KB", 1, "RU", "infrastructure/emulator/cosmosemu", "2026-11-27")
	queryCost         = assumed("query, and 0.02 for each document and 0.1 for each KB", 2.3, "RU", "infrastructure/emulator/cosmosemu", "2026-11-27")
	relayRate         = assumed("events of a relay with half a core; measured with two cores and in memory: 44,737/s with relay, broker and consumer", 10_000, "/s", "tests/bench/README.md", "2026-11-27")
	pageItems         = figure("documents of a page of the change feed", 100, "", "FEEDBOX_RELAY_MAX_ITEMS", "2026-11-27")
)

var figures []*Figure

func figure(what string, value float64, unit, source, date string) *Figure {
	f := &Figure{What: what, Value: value, Unit: unit, Source: source, Date: date}
	figures = append(figures, f)
	return f
}

func assumed(what string, value float64, unit, source, date string) *Figure {
	f := figure(what, value, unit, source, date)
	f.Assumed = true
	return f
}

// Figures returns all figures.
func Figures() []*Figure { return figures }

// charges is the table of request charges by size: KB, a read, a write.
var charges = [][3]float64{
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

// Charge returns the request units of a read and a write of a document of that many bytes. It
// interpolates between the rows of the table.
func Charge(bytes int) (read, write float64) {
	low := charges[0]
	kb := max(float64(bytes)/1024, low[0])
	for _, high := range charges[1:] {
		if kb <= high[0] {
			part := (kb - low[0]) / (high[0] - low[0])
			return low[1] + part*(high[1]-low[1]), low[2] + part*(high[2]-low[2])
		}
		low = high
	}
	return low[1], low[2]
}

// FeedCharge returns the request units of reads of the change feed with that many documents and
// KB together.
func FeedCharge(reads, documents, kb float64) float64 {
	return reads*feedCost.Value + 0.05*documents + 0.2*kb
}

// QueryCharge returns the request units of a query that reads that many documents and KB.
func QueryCharge(documents, kb float64) float64 { return queryCost.Value + 0.02*documents + 0.1*kb }
