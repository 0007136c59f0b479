import HTTPServer
import HubCore
import NotificationHubs

extension HTTPTarget {
  /// Whether a flag such as `direct` counts as set: present with no value, an empty one or `true`
  /// (spec `rest-api.md` 1.1).
  func isFlagSet(_ name: String) -> Bool {
    guard let item = queryItem(name) else { return false }
    guard let value = item.rawValue, !value.isEmpty else { return true }
    return item.value?.lowercased() == "true"
  }
}

extension HubAPI {
  /// The absolute URL of a notification that was posted to `request`'s path, with the request's
  /// query repeated (spec 5.3); SDKs parse it as an absolute URL.
  func address(of id: NotificationID, below request: HTTPRequest) -> String {
    var path = request.target.rawPath
    if path.last == UInt8(ascii: "/") { path.removeLast() }
    let query = request.target.rawQuery.map { "?" + String(decoding: $0, as: UTF8.self) } ?? ""
    return "\(scheme(of: request))://\(host(of: request))"
      + "\(String(decoding: path, as: UTF8.self))/\(id.rawValue)\(query)"
  }

  /// The absolute URL of a resource of a hub, without query.
  /// - Parameter path: Below the hub; of characters that need no encoding.
  func address(of hub: Hub, _ path: String, _ request: HTTPRequest) -> String {
    "\(scheme(of: request))://\(host(of: request))/\(hub.name)/\(path)"
  }

  /// The absolute URL of what `request` asks for; telemetry writes it with the scheme `sb`.
  func address(of request: HTTPRequest, scheme: String) -> String {
    "\(scheme)://\(host(of: request))\(request.target)"
  }

  /// The address of what a request asks for, from which those in its reply are made.
  func address(of request: HTTPRequest) -> AtomAddress {
    AtomAddress(address(of: request, scheme: scheme(of: request)))
  }

  /// The scheme by which the client reaches the server.
  func scheme(of request: HTTPRequest) -> String {
    configuration.publicScheme ?? (request.isSecure ? "https" : "http")
  }

  /// The name and port under which the client knows the server.
  func host(of request: HTTPRequest) -> String {
    let host = request.headers["Host"] ?? ""
    let isName = host.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "A")...UInt8(ascii: "Z"):
        true
      default: ".-_:[]".utf8.contains(byte)
      }
    }
    return isName && !host.isEmpty ? host : "localhost"
  }
}
