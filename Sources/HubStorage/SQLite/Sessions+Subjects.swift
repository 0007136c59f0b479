import HubCore
import SQLDatabase

extension ReadSession: TargetReading {
  var sql: any SQLConnection { connection }

  func hasHub(_ hub: Hub.ID) throws -> Bool { try connection.hasHub(hub) }

  func targets(_ numbers: [RegistrationID], hub: Hub.ID) throws -> TargetPage {
    try TargetReader(self).page(of: numbers, isNative: nil)
  }
}

extension WriteSession: SubjectWriting {
  var sql: any SQLConnection { connection }

  /// Announces that hubs, policies or credentials change with this transaction.
  func changeDirectory() {
    state.directoryVersion += 1
    hasChangedDirectory = true
  }

  func hasHub(_ hub: Hub.ID) throws -> Bool {
    if hubs.contains(hub) { return true }
    guard try connection.hasHub(hub) else { return false }
    hubs.insert(hub)
    return true
  }

  func nextHub() throws -> Hub.ID {
    state.lastHub += 1
    return state.lastHub
  }

  func willDelete(_ hub: Hub.ID) throws {
    try TagMemberWriter(self).writeTags()
    try DeviceKeyWriter(self).writeKeys()
    hasDroppedTags = true
    forget()
  }

  /// Always empty: the servers of a file are found through the lock on its data directory.
  func nodes(lacking key: String) throws -> [String] { [] }
}
