import Foundation
import Synchronization

/// PgBouncer in transaction mode before a ``PostgresServer``: what a client does in one transaction
/// and in the next comes to whichever session of the server is free.
package final class PgBouncer: Sendable {
  private static let program: String? = {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return (folders.map(String.init) + ["/usr/sbin"]).map { $0 + "/pgbouncer" }
      .first(where: FileManager.default.isExecutableFile)
  }()

  /// Whether the program is on this machine; `script/bootstrap` installs it.
  package static var isInstalled: Bool { program != nil && PostgresServer.isInstalled }
  package static let absence = "PgBouncer is not installed; script/bootstrap installs it"

  private let directory: TemporaryDirectory

  /// One before ``PostgresServer/shared()`` for all tests of this process; it ends with the
  /// process.
  package static func shared() throws -> PgBouncer {
    try common.withLock { present in
      if let present { return present }
      let new = try PgBouncer(before: try PostgresServer.shared())
      present = new
      atexit { PgBouncer.common.withLock { $0 }?.stop() }
      return new
    }
  }

  private static let common = Mutex<PgBouncer?>(nil)

  /// - Parameter sessions: How many sessions of the server the clients of a database share.
  package init(before server: PostgresServer, sessions: Int = 3) throws {
    guard let program = Self.program else {
      throw PostgresServer.Fault(description: Self.absence)
    }
    directory = try TemporaryDirectory()
    let path = directory.url.path
    let settings = """
      [databases]
      * = host='\(server.socketDirectory)' user=belfry
      [pgbouncer]
      pool_mode = transaction
      default_pool_size = \(sessions)
      max_client_conn = 1000
      auth_type = any
      listen_addr =
      listen_port = 6432
      unix_socket_dir = \(path)
      pidfile = \(path)/pid
      logfile = \(path)/log
      """
    do {
      try settings.write(toFile: directory.path("ini"), atomically: true, encoding: .utf8)
      // It refuses to run as root, as the server does.
      let isRoot = geteuid() == 0
      if isRoot { try PostgresServer.run("chown -R postgres '\(path)'") }
      try PostgresServer.run(
        (isRoot ? "cd / && runuser -u postgres -- " : "") + "\(program) -q -d '\(path)/ini'")
    } catch {
      directory.remove()
      throw error
    }
  }

  /// The address of a database of its server, through it.
  /// - Parameter address: As the server gives it.
  package func address(of address: String) -> String {
    // The last of two counts.
    "\(address) host='\(directory.url.path)' port=6432"
  }

  package func stop() {
    if let text = try? String(contentsOfFile: directory.path("pid"), encoding: .utf8),
      let process = pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines)), process > 0
    {
      // It has nothing to lose, and inherits from a thread of the tests that other signals wait.
      kill(process, SIGKILL)
    }
    directory.remove()
  }
}
