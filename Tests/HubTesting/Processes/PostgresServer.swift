import Foundation
import SQLDatabase
import Synchronization

/// A PostgreSQL server of the test run's own: a new cluster in a temporary directory, reached by a
/// socket there, never one that the machine runs already.
package final class PostgresServer: Sendable {
  /// An error that names the missing part.
  package struct Fault: Error, CustomStringConvertible {
    package let description: String
  }

  /// The directory of the server's programs, as Debian and Homebrew install them.
  private static let programs: String? = {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    var candidates = folders.map(String.init)
    for root in ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"] {
      for name in ((try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []).sorted()
        .reversed()
      where root.hasSuffix("postgresql") || name.hasPrefix("postgresql") {
        candidates.append("\(root)/\(name)/bin")
      }
    }
    let found = candidates.map { $0 + "/initdb" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
    // If only some of the programs are linked there, the others stand beside the targets of the
    // links.
    return found.map {
      URL(fileURLWithPath: $0).resolvingSymlinksInPath().deletingLastPathComponent().path
    }
  }()

  /// Whether the server's programs are on this machine; `script/bootstrap` installs them.
  package static var isInstalled: Bool { programs != nil }

  private let directory: TemporaryDirectory
  private let prefix: String

  /// One server for all tests of this process that only need a database; it ends with the process.
  package static func shared() throws -> PostgresServer {
    try common.withLock { server in
      if let server { return server }
      let new = try PostgresServer()
      server = new
      atexit { PostgresServer.common.withLock { $0 }?.stop() }
      return new
    }
  }

  private static let common = Mutex<PostgresServer?>(nil)

  /// Makes an empty database and returns its address.
  package func makeDatabase() throws -> String {
    let name = "t" + UUID().uuidString.lowercased().replacing("-", with: "")
    let connection = try PostgresConnection(address: address(), component: "test")
    try connection.execute("CREATE DATABASE \(name)")
    connection.close()
    return address(name)
  }

  /// Makes a database with what `prepare` writes into the first of this name: the others begin as
  /// copies of that, which takes a fraction of the time.
  /// - Returns: Its address.
  package func makeDatabase(
    like template: String, prepare: @escaping @Sendable (String) async throws -> Void
  ) async throws -> String {
    try await templates.make(template) { [self] in
      let connection = try PostgresConnection(address: address(), component: "test")
      try connection.execute("CREATE DATABASE \(template)")
      connection.close()
      try await prepare(address(template))
    }
    let name = "t" + UUID().uuidString.lowercased().replacing("-", with: "")
    let connection = try PostgresConnection(address: address(), component: "test")
    try connection.execute("CREATE DATABASE \(name) TEMPLATE \(template)")
    connection.close()
    return address(name)
  }

  /// Removes one that nobody is connected to.
  package func removeDatabase(at address: String) throws {
    guard let name = address.split(separator: "dbname=").last else { return }
    let connection = try PostgresConnection(address: self.address(), component: "test")
    defer { connection.close() }
    try connection.execute("DROP DATABASE \(name) WITH (FORCE)")
  }

  private let templates = Templates()

  /// Makes each template once, however many tests want it at once.
  private actor Templates {
    private var tasks: [String: Task<Void, any Error>] = [:]

    func make(_ name: String, _ body: @escaping @Sendable () async throws -> Void) async throws {
      let task = tasks[name] ?? Task { try await body() }
      tasks[name] = task
      try await task.value
    }
  }

  /// Makes a cluster and starts its server.
  package convenience init() throws {
    try self.init { prefix, data in
      "\(prefix)/initdb -A trust -U belfry -N -E UTF8 --locale=C -D '\(data)'"
    }
  }

  /// Makes a cluster that follows another server, and takes no writes.
  package convenience init(standbyOf primary: PostgresServer) throws {
    try self.init { prefix, data in
      "\(prefix)/pg_basebackup -h '\(primary.directory.url.path)' -U belfry -c fast -N -R -D '\(data)'"
    }
  }

  /// - Parameter make: The command that makes the cluster, from how its program is called and where
  ///   it is to be.
  private init(_ make: (_ prefix: String, _ data: String) -> String) throws {
    guard let programs = Self.programs else { throw Fault(description: "initdb is not installed") }
    directory = try TemporaryDirectory()
    let path = directory.url.path
    // The server refuses to run as root; there it runs as its own user.
    prefix = geteuid() == 0 ? "cd / && runuser -u postgres -- \(programs)" : programs
    if geteuid() == 0 { try Self.run("chown postgres '\(path)'") }
    do {
      try Self.run(make(prefix, path + "/data"))
      try resume()
    } catch {
      directory.remove()
      throw error
    }
  }

  /// From here on a user has to tell a password.
  package func wantPassword(of user: String) throws {
    let path = directory.url.path + "/data/pg_hba.conf"
    let rules = try String(contentsOfFile: path, encoding: .utf8)
    // Written into, so that it stays the server's own.
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: Data("local all \(user) scram-sha-256\n\(rules)".utf8))
    try file.close()
    try Self.run("\(prefix)/pg_ctl -D '\(directory.url.path)/data' reload")
  }

  /// The address of a database, for libpq.
  package func address(_ database: String = "postgres") -> String {
    "host='\(directory.url.path)' user=belfry dbname=\(database)"
  }

  /// Ends the server, as a crash would; it can be started again.
  package func pause() throws {
    try Self.run("\(prefix)/pg_ctl -D '\(directory.url.path)/data' -m immediate -w stop")
  }

  package func resume() throws {
    let path = directory.url.path
    try Self.run(
      "\(prefix)/pg_ctl -D '\(path)/data' -l '\(path)/log' -w "
        + "-o \"-c listen_addresses='' -c fsync=off -c max_connections=1000 -k '\(path)'\" start")
  }

  /// Ends the server, as a power cut would, and begins to remove the cluster: each database is some hundred files, so
  /// that a run of many would wait for minutes before it ends.
  package func stop() {
    try? Self.run("\(prefix)/pg_ctl -D '\(directory.url.path)/data' -m immediate -w stop")
    try? Self.run("rm -rf '\(directory.url.path)' &")
  }

  /// The directory of its socket.
  var socketDirectory: String { directory.url.path }

  static func run(_ command: String) throws {
    let code = system("(\(command)) >/dev/null 2>&1 </dev/null")
    guard code == 0 else { throw Fault(description: "failed (\(code)): \(command)") }
  }
}
