import HubCore
import SQLDatabase

/// The one row of `store_state`: the writer of the last commit, and the last allocated numbers.
struct StoreState: Hashable, Sendable {
  var commitNumber: Int64
  var writer: Int64
  var directoryVersion: Int64
  var lastHub: Int64
  var lastInstallation: Int64
  var lastRegistration: Int64
  var lastTag: Int64
  var lastTemplate: Int64
  var lastNotification: Int64

  static func read(from connection: any SQLConnection) throws -> StoreState {
    let row = try connection.statement(
      """
      SELECT commit_number, writer, directory_version, last_hub, last_installation,
        last_registration, last_tag, last_template, last_notification FROM store_state
      """)
    guard try row.step() else { throw StoreError.corrupt("store_state is empty") }
    return StoreState(
      commitNumber: row.integer(0), writer: row.integer(1), directoryVersion: row.integer(2),
      lastHub: row.integer(3), lastInstallation: row.integer(4), lastRegistration: row.integer(5),
      lastTag: row.integer(6), lastTemplate: row.integer(7), lastNotification: row.integer(8))
  }

  func write(to connection: any SQLConnection) throws {
    let row = try connection.statement(
      """
      UPDATE store_state SET commit_number = ?1, writer = ?2, directory_version = ?3,
        last_hub = ?4, last_installation = ?5, last_registration = ?6, last_tag = ?7,
        last_template = ?8, last_notification = ?9
      """)
    let values = [
      commitNumber, writer, directoryVersion, lastHub, lastInstallation, lastRegistration, lastTag,
      lastTemplate, lastNotification,
    ]
    for (index, value) in values.enumerated() { try row.bind(value, at: Int32(index + 1)) }
    try row.run()
  }
}
