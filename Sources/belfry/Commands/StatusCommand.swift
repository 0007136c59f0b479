import Foundation
import NotificationHubs

struct StatusCommand: ResultCommand {
  static let about = CommandHelp(
    "status", "show the hub that commands use here, and how it is",
    discussion: """
      Names what a command without options uses in this directory and why, whether its server is
      ready (`belfry health` has the details, and an exit code for scripts), and its hubs with their
      devices, credentials and newest notification.
      """,
    examples: ["belfry status", "belfry status --data /var/lib/belfry --json"])

  let client = ClientOptions(naming: .none, directoryAccess: .inProcess)

  /// The maximum number of hubs that are looked at.
  private static let most = 20

  func result(in context: CommandContext) async throws -> CommandResult {
    let target = try client.location.target(namesHub: false, in: context)
    // The target is a part of the result.
    var quiet = context
    quiet.note = { _ in }
    let portal = try? target.portal(context.environment).prefix { $0 != "#" }
    let server = try? target.address()
    let status = Status(
      target: target.shown, from: target.origin.description, server: server,
      state: await state(of: server), portal: portal.map(String.init),
      hubs: try await hubs(in: quiet))
    return CommandResult(status, status.lines)
  }

  /// - Returns: `nil` if no server runs.
  private func state(of server: String?) async -> String? {
    guard let server else { return nil }
    do {
      let anchors = try client.ca.map { try ClientTransport.anchors(in: $0) } ?? []
      return try await ServerHealth.ask(server, anchorsPEM: anchors).report.status
    } catch {
      return "no answer"
    }
  }

  /// - Returns: `nil` if the key may not list them.
  private func hubs(in context: CommandContext) async throws -> [Status.Hub]? {
    try await client.withHub(in: context) { access in
      let hubs: [HubDescription]
      do {
        hubs = try await access.namespace.hubs()
      } catch let error as NotificationHubError where error.kind == .unauthorized {
        return nil
      }
      var shown: [Status.Hub] = []
      for hub in hubs.prefix(Self.most) {
        let one = HubAccess(
          connection: access.connection, hub: hub.name, transport: access.transport,
          authority: access.authority, runtime: access.runtime
        ).client
        let count = try? await one.count(of: nil)
        let last = try? await one.notifications(NotificationQuery(pageSize: 1)).first(1).first
        shown.append(
          Status.Hub(
            name: hub.name, isDisabled: hub.isDisabled,
            credentials: hub.credentials.keys.map(\.rawValue).sorted(),
            devices: count?.devices,
            last: last.map { .init(notificationId: $0.notificationID, state: "\($0.state)") }))
      }
      return shown
    }
  }
}

/// The result of `belfry status`.
private struct Status: Encodable {
  struct Hub: Encodable {
    struct Notification: Encodable {
      let notificationId: String
      let state: String
    }

    let name: String
    let isDisabled: Bool
    let credentials: [String]
    /// See ``AudienceCount/devices``; `nil` if it is unknown.
    let devices: Int?
    let last: Notification?

    var line: String {
      var parts = [devices.map { $0.counted("device") } ?? "devices unknown"]
      parts.append(
        credentials.isEmpty ? "no credential" : "credentials " + credentials.joined(separator: " "))
      parts.append(
        last.map { "last sent \($0.notificationId) (\($0.state))" } ?? "nothing sent yet")
      return name + (isDisabled ? " (disabled)" : "") + ": " + parts.joined(separator: ", ")
    }
  }

  let target: String
  let from: String
  let server: String?
  let state: String?
  let portal: String?
  let hubs: [Hub]?

  var lines: [String] {
    var lines = ["uses    \(target), from \(from)"]
    lines.append(
      server.map { "server  \(state ?? "no answer") at \($0)" }
        ?? "server  none runs; start `belfry serve --data \(CurlCommand.word(target))`")
    if let portal { lines.append("portal  \(portal)  (`belfry open`)") }
    guard let hubs else { return lines + ["hubs    this key may not list them"] }
    if hubs.isEmpty { return lines + ["hubs    none; make one with `belfry hub create NAME`"] }
    for (number, hub) in hubs.enumerated() {
      lines.append((number == 0 ? "hubs    " : "        ") + hub.line)
    }
    return lines
  }
}
