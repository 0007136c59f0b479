package import HTTPServer
import HubCore

/// The portal: a browser interface to everything that a hub does, under ``path``, before the hub's
/// own API, which is all that the page calls. A browser that opens the root is redirected there.
///
/// Its files contain no secrets and are public. In development ``PortalController`` signs the local user
/// in, and forwards calls to the emulator.
package struct Portal: HTTPHandler {
  /// The path of the portal. No hub name can begin with `$`.
  package static let path = "/$portal/"

  private let calls: PortalCalls?
  private let next: any HTTPHandler

  /// - Parameters:
  ///   - controller: The functions for development; `nil` requires a key to sign in, and offers no
  ///     emulator.
  ///   - next: The handler for all other requests.
  package init(controller: (any PortalController)? = nil, next: any HTTPHandler) {
    calls = controller.map { PortalCalls(controller: $0) }
    self.next = next
  }

  package func next(for request: HTTPRequest) -> (any HTTPHandler)? {
    let first = request.target.pathSegments.first
    let isMine = first.map { $0.decoded == Self.folder } ?? request.isOfBrowserAtRoot
    return isMine ? nil : next
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    if let next = next(for: request) { return await next.respond(to: request) }
    let segments = request.target.pathSegments
    if segments.isEmpty { return Self.moved }
    return await answer(request, segments.dropFirst().map { $0.decoded ?? "" }).guarded(
      "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
      "worker-src 'self'", "require-trusted-types-for 'script'", "trusted-types worker")
  }

  package func look(atHead head: HTTPRequest) -> HTTPHeadLook {
    next.look(atHead: head)
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    next.reject(status, request: request)
  }

  private static let folder = String(path.dropFirst().dropLast())

  /// Not a permanent redirect, so that bookmarks of the root still work if the portal is disabled.
  private static let moved = HTTPResponse(
    HTTPStatus(rawValue: 302),
    headers: ["Location": path, "Cache-Control": "no-store", "Vary": "Accept, Authorization"])

  /// - Parameter names: The path segments below the portal's folder.
  private func answer(_ request: HTTPRequest, _ names: [String]) async -> HTTPResponse {
    if request.target.hasDotSegment { return WebPageCalls.refusal(.badRequest, Self.nothing) }
    switch names.first {
    case "session", "oidc": return await next.respond(to: request)
    case "local", "emulator":
      return await calls?.respond(to: request) ?? WebPageCalls.refusal(.notFound, Self.nothing)
    default: break
    }
    guard request.method == .get || request.method == .head else {
      return HTTPResponse(.methodNotAllowed, headers: ["Allow": "GET, HEAD"])
    }
    if request.target.rawPath.count == Self.path.utf8.count - 1 {
      return HTTPResponse(HTTPStatus(rawValue: 308), headers: ["Location": Self.path])
    }
    let name = names.joined(separator: "/")
    if let file = WebFile.portal[name] ?? Self.made[name] { return file.response(to: request) }
    // Every page has its own URL, and all of them are served by this file.
    guard !Self.isFile(names), let page = WebFile.portal["portal.html"] else {
      return WebPageCalls.refusal(.notFound, Self.nothing)
    }
    return page.response(to: request)
  }

  private static let nothing = "There is no such thing at the portal"
  private static let made = [WebFile.platforms.name: WebFile.platforms]

  /// Whether the request is for a missing script or style, for which a page would be confusing.
  /// Names of hubs and ids of devices occur only below a folder.
  private static func isFile(_ names: [String]) -> Bool {
    switch names.first {
    case "pages", "texts": true
    case let name? where names.count == 1: name.contains(".")
    default: false
    }
  }
}

extension HTTPRequest {
  /// Whether a browser opens the root; API clients get the API's reply there.
  var isOfBrowserAtRoot: Bool {
    (method == .get || method == .head) && target.pathSegments.isEmpty
      && headers["Authorization"] == nil && headers["Accept"]?.contains("text/html") == true
  }
}
