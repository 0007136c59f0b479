import Foundation
import HubCore
import SQLDatabase

/// The processes that work on a database.
struct NodeTable {
  let connection: PostgresConnection

  init(_ connection: PostgresConnection) { self.connection = connection }

  /// True for the row of a node with this alias that no other has declared dead.
  static func isAlive(_ node: String) -> String { "\(node).is_dead = 0" }

  /// Records a node's heartbeat; one that has been declared dead gets a new id.
  /// - Parameters:
  ///   - keys: The ids of the master keys that it has.
  ///   - clock: The clock of this machine.
  ///   - mayJoin: Throws when it must not get an id.
  /// - Returns: Its number, the database's clock, and the other nodes that live.
  func beat(
    _ node: StoreNode, keys: [String], _ clock: HubClock, mayJoin: () throws -> Void
  ) throws -> (id: Int64, reading: NodeLease.Reading, peers: [NodeLease.Peer]) {
    let id = try renew(node, keys: keys) ?? join(node, keys: keys, mayJoin)
    let peers = try peers().filter { $0.id != id }
    let before = clock.steady()
    let row = try connection.statement(
      "SELECT \(PostgresConnection.databaseTime), clock_steps FROM store_state")
    guard try row.step() else { throw StoreError.corrupt("store_state is empty") }
    // The clock was read at some time between the request and the reply.
    let taken = clock.steady().timeIntervalSince(before)
    let reading = NodeLease.Reading(
      local: before.addingTimeInterval(taken / 2), uncertainty: taken,
      time: Date(milliseconds: row.integer(0)), steps: row.integer(1))
    return (id, reading, peers)
  }

  /// - Returns: `nil` when the node is dead, whether or not its work has been taken over.
  private func renew(_ node: StoreNode, keys: [String]) throws -> Int64? {
    let count = try connection.change(
      """
      UPDATE node SET beats = beats + 1, heartbeat = \(PostgresConnection.databaseTime), address = ?2, keys = ?3
      WHERE id = ?1 AND \(Self.isAlive("node"))
      """, node.id, node.address, keys.joined(separator: " "))
    return count > 0 ? node.id : nil
  }

  private func join(
    _ node: StoreNode, keys: [String], _ mayJoin: () throws -> Void
  ) throws -> Int64 {
    try mayJoin()
    try connection.change("DELETE FROM node WHERE id = ?1", node.id)
    // Nodes that have crashed remain listed for a day.
    try connection.change(
      "DELETE FROM node WHERE is_dead = 1 AND heartbeat < \(PostgresConnection.databaseTime) - 86400000"
    )
    let row = try connection.statement(
      """
      INSERT INTO node (name, address, version, started_at, heartbeat, keys, lease)
      VALUES (?1, ?2, ?3, \(PostgresConnection.databaseTime), \(PostgresConnection.databaseTime), ?4, ?5) RETURNING id
      """, node.name, node.address, node.version, keys.joined(separator: " "),
      Int64(node.lease * 1000))
    guard try row.step() else { throw StoreError.corrupt("a node gets no number") }
    return row.integer(0)
  }

  /// The nodes that no other has declared dead.
  func peers() throws -> [NodeLease.Peer] {
    try connection.rows(
      "SELECT id, beats, heartbeat, lease FROM node WHERE \(Self.isAlive("node"))"
    ) {
      NodeLease.Peer(
        id: $0.integer(0), beats: $0.integer(1), heartbeat: Date(milliseconds: $0.integer(2)),
        lease: Double($0.integer(3)) / 1000)
    }
  }

  /// Declares peers dead, except those that have sent a heartbeat meanwhile.
  func note(dead peers: [NodeLease.Peer]) throws {
    for peer in peers {
      try connection.change(
        "UPDATE node SET is_dead = 1 WHERE id = ?1 AND beats = ?2", peer.id, peer.beats)
    }
  }

  /// Releases the work of a node.
  func release(_ node: Int64) throws {
    try connection.change("UPDATE work SET owner = NULL WHERE owner = ?1 AND is_done = 0", node)
    try connection.change("UPDATE job SET owner = NULL WHERE owner = ?1 AND ended_at IS NULL", node)
  }
}
