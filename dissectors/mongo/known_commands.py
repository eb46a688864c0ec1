"""Commands that are documented. In: a name. Out: whether somebody knows what its arguments are.

Those of a command that nobody knows may be anything, so none is shown. Sources: database command reference of MongoDB
3.6 to 8.0, commands between servers as `listCommands` tells them, those of mongos and of Atlas.
"""

from __future__ import annotations

# Requests of legacy opcodes have no name, and their documents are known to be documents.
_LEGACY = "OP_"
_DOCUMENTED = """
abortReshardCollection abortTransaction addShard addShardToZone aggregate analyze analyzeShardKey appendOplogNote
applyOps authenticate autoSplitVector availableQueryOptions balancerCollectionStatus balancerStart balancerStatus
balancerStop buildInfo buildinfo bulkWrite checkMetadataConsistency checkShardingIndex cleanupOrphaned
cleanupReshardCollection cleanupStructuredEncryptionData clearJumboFlag clone cloneCollection cloneCollectionAsCapped
collMod collStats collstats commitReshardCollection commitTransaction compact compactStructuredEncryptionData
configureCollectionBalancing configureFailPoint configureQueryAnalyzer connPoolStats connPoolSync connectionStatus
convertToCapped coordinateCommitTransaction copydb copydbgetnonce copydbsaslstart count create createIndexes
createRole createSearchIndexes createUser currentOp dataSize dbHash dbStats dbhash dbstats delete distinct
driverOIDTest drop dropAllRolesFromDatabase dropAllUsersFromDatabase dropConnections dropDatabase dropIndexes dropRole
dropSearchIndex dropUser echo enableSharding endSessions explain features filemd5 find findAndModify findandmodify
flushRouterConfig forceerror fsync fsyncUnlock geoNear geoSearch getClusterParameter getCmdLineOpts
getDefaultRWConcern getDiagnosticData getLastError getLog getMore getParameter getPrevError getShardMap
getShardVersion getlasterror getnonce getpreverror grantPrivilegesToRole grantRolesToRole grantRolesToUser group hello
hostInfo insert internalRenameIfOptionsAndIndexesMatch invalidateUserCache isMaster isdbgrid ismaster killAllSessions
killAllSessionsByPattern killCursors killOp killSessions listCollections listCommands listDatabases listIndexes
listSearchIndexes listShards lockInfo logApplicationMessage logRotate logout mapReduce mapreduce mergeAllChunksOnShard
mergeChunks moveChunk moveCollection movePrimary moveRange netstat parallelCollectionScan ping planCacheClear
planCacheClearFilters planCacheListFilters planCacheListPlans planCacheListQueryShapes planCacheSetFilter
prepareTransaction profile reIndex refineCollectionShardKey refreshLogicalSessionCacheNow refreshSessions
removeQuerySettings removeShard removeShardFromZone renameCollection repairDatabase replSetAbortPrimaryCatchUp
replSetFreeze replSetGetConfig replSetGetRBID replSetGetStatus replSetHeartbeat replSetInitiate replSetMaintenance
replSetReconfig replSetRequestVotes replSetResizeOplog replSetStepDown replSetStepUp replSetSyncFrom
replSetUpdatePosition resetError reshardCollection resync revokePrivilegesFromRole revokeRolesFromRole
revokeRolesFromUser rolesInfo saslContinue saslStart serverStatus setAuditConfig setClusterParameter
setDefaultRWConcern setFeatureCompatibilityVersion setIndexCommitQuorum setParameter setProfilingLevel
setQuerySettings setShardVersion setUserWriteBlockMode shardCollection shardConnPoolStats shardingState shutdown split
splitChunk splitVector startSession top touch transitionFromDedicatedConfigServer transitionToDedicatedConfigServer
unshardCollection update updateRole updateSearchIndex updateUser updateZoneKeyRange usersInfo validate
validateDBMetadata voteCommitIndexBuild waitForFailPoint whatsmysni whatsmyuri
"""
KNOWN = frozenset(_DOCUMENTED.split())


def is_known(command: str | None) -> bool:
    """Is it documented? True where no command is named."""
    return command is None or command in KNOWN or command.startswith(_LEGACY)
