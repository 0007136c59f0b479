import Foundation
import HTTPClient
import HTTPServer

/// A listener that a server is about to open. Checked before the data directory is made, since a
/// listener that fails to open would leave the directory behind.
struct PlannedListener {
  /// The origin of its port in messages: `--port`.
  let name: String
  let host: String
  /// The port; 0 picks a free one.
  let port: UInt16

  init(_ name: String, host: String = "127.0.0.1", port: Int) {
    (self.name, self.host, self.port) = (name, host, UInt16(clamping: port))
  }

  /// - Throws: ``CommandFailure`` if two of them need one port, which the system would blame on
  ///   another program.
  static func checkApart(_ listeners: [PlannedListener]) throws(CommandFailure) {
    for (index, listener) in listeners.enumerated() {
      if let other = listeners[..<index].first(where: listener.overlaps) {
        throw CommandFailure(
          "\(listener.name) and \(other.name) are both \(listener.port): each needs a port of its "
            + "own", exitCode: .usage)
      }
    }
  }

  /// - Throws: ``CommandFailure`` if one of them cannot be opened now.
  static func tryOut(_ listeners: [PlannedListener]) throws(CommandFailure) {
    for listener in listeners where listener.port != 0 {
      do {
        close(try ListeningSocket(host: listener.host, port: listener.port).number)
      } catch {
        throw CommandFailure(error.description, exitCode: .unreachable)
      }
    }
  }

  /// Whether the two cannot be open at the same time.
  private func overlaps(_ other: PlannedListener) -> Bool {
    guard port != 0, port == other.port else { return false }
    let hosts = [host, other.host].map { IPAddress($0 == "localhost" ? "127.0.0.1" : $0)?.bytes }
    guard let one = hosts[0], let two = hosts[1] else { return host == other.host }
    if one == two { return true }
    // `0.0.0.0` is every IPv4 address, and `::` every address of both kinds.
    return [one, two].contains { bytes in
      bytes.allSatisfy { $0 == 0 } && (bytes.count == 16 || one.count == two.count)
    }
  }
}
