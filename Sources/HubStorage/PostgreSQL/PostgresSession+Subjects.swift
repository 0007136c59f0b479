import HubCore
import SQLDatabase

extension PostgresSession: TargetReading, SubjectWriting {
  var sql: any SQLConnection { connection }

  func targets(_ numbers: [RegistrationID], hub: Hub.ID) throws -> TargetPage {
    try PostgresTargets(self).page(of: numbers, hub: hub)
  }

  func changeDirectory() throws {
    try execute("UPDATE directory SET version = version + 1")
    changesDirectory = true
  }

  func nextHub() throws -> Hub.ID {
    guard let number = try first("SELECT nextval('hub_id_seq')") else {
      throw StoreError.corrupt("a sequence gives no number")
    }
    return number
  }

  func willDelete(_ hub: Hub.ID) throws { try lockHub(hub, alone: true) }

  func nodes(lacking key: String) throws -> [String] {
    try connection.rows(
      """
      SELECT name, address FROM node WHERE \(NodeTable.isAlive("node"))
        AND position(?1 IN keys) = 0 ORDER BY id
      """, key
    ) { $0.text(0) + ($0.text(1).isEmpty ? "" : " (\($0.text(1)))") }
  }
}
