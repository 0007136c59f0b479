import Foundation
import HTTPClient
import HubServer
import NotificationHubs

/// A hub or a namespace that a command is a client of: its location, and the credentials for it.
struct HubAccess: Sendable {
  let connection: ConnectionString
  /// Empty for the namespace.
  let hub: String
  var transport: any HTTPTransport = ClientTransport.shared
  /// The file with the authority to trust in addition to the system's.
  var authority: String?
  /// The open store in this process; `nil` for a hub over HTTP.
  var runtime: HubRuntime?

  var client: NotificationHubClient {
    NotificationHubClient(
      connectionString: connection, hub: hub, transport: transport, retry: retry)
  }

  var namespace: NamespaceClient {
    NamespaceClient(connectionString: connection, transport: transport, retry: retry)
  }

  /// A store in this process has waited long enough by itself.
  private var retry: RetryPolicy { runtime == nil ? .standard : .none }

  /// Calls the hub; its refusals become failures with the hub's own reason.
  func calling<Value>(_ work: () async throws -> Value) async throws -> Value {
    do {
      return try await work()
    } catch let error as NotificationHubError {
      throw failure(error)
    }
  }

  /// The failure for the hub's refusal.
  func failure(_ error: NotificationHubError) -> CommandFailure {
    if runtime != nil, let detail = error.detail { return CommandFailure(detail) }
    let isAway = error.kind == .unreachable || error.kind == .unexpectedReply
    return CommandFailure(
      (isAway ? "cannot reach the hub: " : "the hub refused: ") + error.description + hint(error),
      exitCode: isAway ? .unreachable : .refused)
  }

  private func hint(_ error: NotificationHubError) -> String {
    let file =
      "`belfry up` prints it as CA, `belfry serve --tls-self-signed` has it as tls-ca.pem in its data "
      + "directory"
    switch (error.underlying as? HTTPFailure)?.kind {
    case .tls where authority == nil:
      return
        ". If its certificate is of an authority of your own, name that with --ca FILE; \(file)"
    case .tls:
      return ". The certificate is not of the authority in \(authority ?? ""), or for another host"
    case .reset where !connection.endpoint.usesTLS:
      return ". It was asked in plain HTTP; if this is its HTTPS port, give --ca FILE: \(file)"
    default: break
    }
    // Belfry itself explains it, in ``WireName/reason``.
    guard error.kind == .unauthorized, error.status == 401 || error.detail == nil else { return "" }
    if hub.isEmpty {
      return
        ". This takes a key with the right Manage: of the namespace, or to show or delete a hub "
        + "that hub's own"
    }
    return error.status == 403
      ? ". The policy \(connection.keyName) lacks the right \(error.missingRight ?? "Manage"), which this "
        + "takes"
      : ". Compare the key with that of `belfry policy show \(connection.keyName)`, and whether "
        + "the hub is called \(hub)"
  }
}

extension HubRuntime {
  /// The API of the open store, which needs no key: also for a command that does with the store what
  /// the API cannot.
  func client(of hub: String = "", in context: CommandContext) -> HubAccess {
    HubAccess(
      connection: ConnectionString(
        endpoint: ServiceEndpoint(host: "localhost", usesTLS: false), keyName: "", key: ""),
      hub: hub,
      transport: InProcessTransport(HubAPI(service: service), as: HubOwner(in: context)),
      runtime: self)
  }
}
