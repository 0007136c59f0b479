import HTTPServer
import HubCore
import NotificationHubs
import Wire

/// Addresses under which a client reaches the hub, for replies.
extension HubAPI {
  /// The absolute URL of a notification that was posted to `request`'s path, with the request's
  /// query repeated (docs/protocol/rest.md, section 5.3); SDKs parse it as an absolute URL.
  func address(of id: NotificationID, below request: HTTPRequest) -> String {
    var path = request.target.rawPath
    if path.last == UInt8(ascii: "/") { path.removeLast() }
    let query = request.target.rawQuery.map { "?" + String(decoding: $0, as: UTF8.self) } ?? ""
    return "\(scheme(of: request))://\(host(of: request))"
      + "\(String(decoding: path, as: UTF8.self))/\(id.rawValue)\(query)"
  }

  /// The absolute URL of a resource of a hub, without query.
  /// - Parameter path: The path below the hub, in characters that need no encoding.
  func address(of hub: Hub, _ path: String, _ request: HTTPRequest) -> String {
    "\(scheme(of: request))://\(host(of: request))/\(hub.name)/\(path)"
  }

  /// The absolute URL of the requested resource; telemetry writes it with the scheme `sb`.
  func address(of request: HTTPRequest, scheme: String) -> String {
    "\(scheme)://\(host(of: request))\(request.target)"
  }

  /// The URL of the requested resource, the base of those in the reply.
  func address(of request: HTTPRequest) -> AtomAddress {
    AtomAddress(address(of: request, scheme: scheme(of: request)))
  }

  /// The scheme by which the client reaches the server.
  func scheme(of request: HTTPRequest) -> String {
    configuration.publicScheme ?? (request.isSecure ? "https" : "http")
  }

  /// The host and port under which the client addresses the server.
  func host(of request: HTTPRequest) -> String {
    let host = request.headers["Host"] ?? ""
    let isName = host.utf8.allSatisfy { $0.isNameByte || ".-:[]".utf8.contains($0) }
    return isName && !host.isEmpty ? host : "localhost"
  }
}
