import HubTesting
import SQLDatabase
import Testing

@Suite(
  "A connection through PgBouncer in transaction mode",
  .enabled(if: PgBouncer.isInstalled, Comment(rawValue: PgBouncer.absence)))
struct PgBouncerTests {
  /// Runs `body` with two clients of one database that share one session of the server, and a third
  /// that has a session of its own.
  private func withClients(_ body: ([PostgresConnection]) throws -> Void) throws {
    let server = try PostgresServer.shared()
    let bouncer = try PgBouncer(before: server, sessions: 1)
    defer { bouncer.stop() }
    let direct = try server.makeDatabase()
    let address = bouncer.address(of: direct)
    let clients = try [address, address, direct].map {
      try PostgresConnection(address: $0, component: "test")
    }
    defer { for client in clients { client.close() } }
    try body(clients)
  }

  @Test("knows that sessions change, and one without a pooler that they do not")
  func isPooled() throws {
    try withClients { #expect($0.map(\.isPooled) == [true, true, false]) }
  }

  @Test("runs statements alone, in transactions and in one go, in turn with another client")
  func statements() throws {
    try withClients { clients in
      try clients[0].execute("CREATE TABLE t (a BIGINT, b BYTEA)")
      for round in 0..<5 {
        for client in clients {
          try client.writing {
            try client.pipelined {
              for value in 0..<3 {
                let row = try client.statement("INSERT INTO t VALUES (?1, ?2)")
                try row.bind(Int64(value), at: 1)
                try row.bind([UInt8(round), 0, 255], at: 2)
                try row.run()
              }
            }
          }
          let row = try client.statement("SELECT b FROM t WHERE a = ?1 ORDER BY b DESC LIMIT 1")
          try row.bind(Int64(2), at: 1)
          let isThere = try row.step()
          #expect(isThere && row.bytes(0) == [UInt8(round), 0, 255])
        }
      }
      let row = try clients[2].statement("SELECT COUNT(*) FROM t")
      _ = try row.step()
      #expect(row.integer(0) == 45)
    }
  }

  @Test("has its settings in each transaction, and leaves none to the next client")
  func settings() throws {
    try withClients { clients in
      let (client, other) = (clients[0], clients[1])
      try client.set([("enable_seqscan", "off"), ("jit", "off")])
      func seen(by client: PostgresConnection) throws -> String {
        let row = try client.statement("SELECT current_setting('enable_seqscan')")
        return try row.step() ? row.text(0) : ""
      }
      #expect(try client.writing { try seen(by: client) } == "off")
      #expect(try client.reading { try seen(by: client) } == "off")
      #expect(try client.separately { try seen(by: client) } == "off")
      #expect(try seen(by: other) == "on")
      #expect(throws: SQLError.self) { try client.writing { try client.execute("SELEKT 1") } }
      #expect(try seen(by: other) == "on")
    }
  }
}
