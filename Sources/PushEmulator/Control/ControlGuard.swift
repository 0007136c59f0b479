import HTTPServer

/// Protects the control API's socket: its requests come from programs, never from web pages. Any
/// client that reaches it gets keys and can wipe the state.
struct ControlGuard: HTTPHandler {
  let next: HTTPRouter
  /// Whether the emulator also listens for other machines, which use names of their own. These must
  /// be such as no web page can choose: an address, or a name without a dot.
  let allowsRemoteClients: Bool

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    if let error = refusal(of: request) {
      return ControlAPI.response(error.body, status: HTTPStatus(rawValue: error.status))
    }
    var response = await next.respond(to: request)
    // Keeps pages on this machine's other ports from loading it as a script or an image.
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
  }

  func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    next.reject(status, request: request)
  }

  private func refusal(of request: HTTPRequest) -> ControlError? {
    guard
      request.isAddressedToLoopback
        || allowsRemoteClients && Self.isOutOfReach(request.headers["Host"] ?? "")
    else {
      return ControlError(
        status: 403, code: "wrong_host",
        message: "use http://127.0.0.1 or http://localhost with the port; other names are refused, "
          + "because a web page can have its own name lead here")
    }
    if request.isFromElsewhere(allowsNavigation: true) {
      return ControlError(
        status: 403, code: "cross_origin", message: "web pages of other origins are refused")
    }
    guard request.hasJSONBody else {
      return ControlError(
        status: 415, code: "unsupported_media_type",
        message: "send the body with 'Content-Type: application/json' (curl: --json)")
    }
    return nil
  }

  /// Whether public DNS cannot resolve the name.
  private static func isOutOfReach(_ host: String) -> Bool {
    if host.hasPrefix("[") { return true }
    let name = host.prefix { $0 != ":" }
    let isAddress = name.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
    return !name.isEmpty && (isAddress || !name.contains("."))
  }
}
