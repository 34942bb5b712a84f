package cosmosemu

// Operation names a wire operation.
type Operation string

// The operations, one per kind of request.
const (
	OpReadAccount            Operation = "ReadAccount"
	OpCreateDatabase         Operation = "CreateDatabase"
	OpReadDatabase           Operation = "ReadDatabase"
	OpDeleteDatabase         Operation = "DeleteDatabase"
	OpListDatabases          Operation = "ListDatabases"
	OpQueryDatabases         Operation = "QueryDatabases"
	OpCreateContainer        Operation = "CreateContainer"
	OpReadContainer          Operation = "ReadContainer"
	OpReplaceContainer       Operation = "ReplaceContainer"
	OpDeleteContainer        Operation = "DeleteContainer"
	OpListContainers         Operation = "ListContainers"
	OpQueryContainers        Operation = "QueryContainers"
	OpCreateUser             Operation = "CreateUser"
	OpReadUser               Operation = "ReadUser"
	OpReplaceUser            Operation = "ReplaceUser"
	OpDeleteUser             Operation = "DeleteUser"
	OpListUsers              Operation = "ListUsers"
	OpQueryUsers             Operation = "QueryUsers"
	OpCreatePermission       Operation = "CreatePermission"
	OpReadPermission         Operation = "ReadPermission"
	OpReplacePermission      Operation = "ReplacePermission"
	OpDeletePermission       Operation = "DeletePermission"
	OpListPermissions        Operation = "ListPermissions"
	OpQueryPermissions       Operation = "QueryPermissions"
	OpListOffers             Operation = "ListOffers"
	OpQueryOffers            Operation = "QueryOffers"
	OpReadOffer              Operation = "ReadOffer"
	OpReplaceOffer           Operation = "ReplaceOffer"
	OpReadPartitionKeyRanges Operation = "ReadPartitionKeyRanges"
	OpCreateItem             Operation = "CreateItem"
	OpUpsertItem             Operation = "UpsertItem"
	OpReadItem               Operation = "ReadItem"
	OpReplaceItem            Operation = "ReplaceItem"
	OpPatchItem              Operation = "PatchItem"
	OpDeleteItem             Operation = "DeleteItem"
	OpListItems              Operation = "ListItems"
	OpBatch                  Operation = "Batch"
	OpDeletePartition        Operation = "DeletePartition"
	OpListConflicts          Operation = "ListConflicts"
	OpReadConflict           Operation = "ReadConflict"
	OpReadChangeFeed         Operation = "ReadChangeFeed"
	OpQueryItems             Operation = "QueryItems"
	OpQueryPlan              Operation = "QueryPlan"
)

// handlers maps each operation to its page, op_*.go.
var handlers = map[Operation]func(*request) (*reply, error){
	OpReadAccount:            readAccount,
	OpCreateDatabase:         createDatabase,
	OpReadDatabase:           readDatabase,
	OpDeleteDatabase:         deleteDatabase,
	OpListDatabases:          listDatabases,
	OpQueryDatabases:         queryDatabases,
	OpCreateContainer:        createContainer,
	OpReadContainer:          readContainer,
	OpReplaceContainer:       replaceContainer,
	OpDeleteContainer:        deleteContainer,
	OpListContainers:         listContainers,
	OpQueryContainers:        queryContainers,
	OpCreateUser:             createUser,
	OpReadUser:               readUser,
	OpReplaceUser:            replaceUser,
	OpDeleteUser:             deleteUser,
	OpListUsers:              listUsers,
	OpQueryUsers:             queryUsers,
	OpCreatePermission:       createPermission,
	OpReadPermission:         readPermission,
	OpReplacePermission:      replacePermission,
	OpDeletePermission:       deletePermission,
	OpListPermissions:        listPermissions,
	OpQueryPermissions:       queryPermissions,
	OpListOffers:             listOffers,
	OpQueryOffers:            queryOffers,
	OpReadOffer:              readOffer,
	OpReplaceOffer:           replaceOffer,
	OpReadPartitionKeyRanges: readPartitionKeyRanges,
	OpCreateItem:             createItem,
	OpUpsertItem:             upsertItem,
	OpReadItem:               readItem,
	OpReplaceItem:            replaceItem,
	OpPatchItem:              patchItem,
	OpDeleteItem:             deleteItem,
	OpListItems:              listItems,
	OpBatch:                  executeBatch,
	OpDeletePartition:        deletePartition,
	OpListConflicts:          listConflicts,
	OpReadConflict:           readConflict,
	OpReadChangeFeed:         readChangeFeed,
	OpQueryItems:             queryItems,
	OpQueryPlan:              queryPlan,
}
