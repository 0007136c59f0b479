import Foundation
package import NotificationHubs

/// The output of `belfry up --json` and `belfry emulator --json`.
package struct UpLine: Decodable, Sendable {
  package struct Hub: Decodable, Sendable {
    package struct ConnectionStrings: Decodable, Sendable {
      package let listen: String
      package let full: String
    }
    package let name: String
    package let url: String
    package let connectionStrings: ConnectionStrings
    package let namespaceConnectionString: String
    package let httpsUrl: String
    package let httpsConnectionStrings: ConnectionStrings
    package let httpsNamespaceConnectionString: String
    package let ca: String
  }
  package struct Backend: Decodable, Sendable {
    package let url: String
  }
  package let hub: Hub
  package let backend: Backend
  package let emulator: EmulatorLine
  package let data: String
}

package struct EmulatorLine: Decodable, Sendable {
  package let control: String
  package let apns: String
  package let ca: String
  package let topic: String
}

extension BelfryProcess {
  /// Starts `belfry up` on free ports and waits until it says that it is ready.
  package static func up(
    _ words: [String] = [], readsErrors: Bool = true
  ) async throws -> (BelfryProcess, UpLine) {
    let process = try BelfryProcess(
      ["up", "--json", "--port", "0"] + words, readsErrors: readsErrors)
    let line = try await process.line { $0.hasPrefix("{") }
    return (process, try JSONDecoder().decode(UpLine.self, from: Data(line.utf8)))
  }

  /// Asks for an orderly end, and waits for it.
  package func end() async throws -> Int32 {
    signal(SIGTERM)
    return try await exitCode()
  }
}

extension UpLine {
  package func client(_ connection: KeyPath<Hub.ConnectionStrings, String> = \.full) throws
    -> NotificationHubClient
  {
    NotificationHubClient(
      connectionString: try ConnectionString(hub.connectionStrings[keyPath: connection]),
      hub: hub.name)
  }
}
