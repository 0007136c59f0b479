package import HTTPServer
import HubCore

/// The portal: everything that a hub does, in a browser; under ``path``, in front of the hub's own
/// API, which is all that the page calls. A browser that opens the root is sent there.
///
/// Its files hold no secret and go to anybody. Under development ``PortalDesk`` signs the local
/// user in, and forwards to the emulator.
package struct Portal: HTTPHandler {
  /// No hub's name can begin with `$`.
  package static let path = "/$portal/"

  private let calls: PortalCalls?
  private let next: any HTTPHandler

  /// - Parameters:
  ///   - desk: `nil`: nobody is signed in without a key, and there is no emulator.
  ///   - next: Answers what is not the page's.
  package init(desk: (any PortalDesk)? = nil, next: any HTTPHandler) {
    calls = desk.map { PortalCalls(desk: $0) }
    self.next = next
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    let segments = request.target.pathSegments
    guard let first = segments.first else {
      return request.isOfBrowserAtRoot ? Self.moved : await next.respond(to: request)
    }
    guard first.decoded == Self.folder else { return await next.respond(to: request) }
    return await answer(request, segments.dropFirst().map { $0.decoded ?? "" }).guarded(
      "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
      "require-trusted-types-for 'script'", "trusted-types 'none'")
  }

  package func look(atHead head: HTTPRequest) -> HTTPHeadLook {
    next.look(atHead: head)
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    next.reject(status, request: request)
  }

  private static let folder = String(path.dropFirst().dropLast())

  /// A person's bookmark of the root should go on asking, in case the portal is turned off.
  private static let moved = HTTPResponse(
    HTTPStatus(rawValue: 302),
    headers: ["Location": path, "Cache-Control": "no-store", "Vary": "Accept, Authorization"])

  /// - Parameter names: The segments below the portal's folder.
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
    if let file = WebFile.portal[name] ?? Self.shared[name] { return file.response(to: request) }
    // Every page has an address, and all of them are this one.
    guard !Self.isFile(names), let page = WebFile.portal["portal.html"] else {
      return WebPageCalls.refusal(.notFound, Self.nothing)
    }
    return page.response(to: request)
  }

  private static let nothing = "There is no such thing at the portal"
  private static let shared = WebFile.browserPage.filter { $0.key == "icon.svg" }

  /// Whether a missing script or style is meant, in place of which a page would only confuse. Names
  /// of hubs and ids of devices stand below a folder.
  private static func isFile(_ names: [String]) -> Bool {
    switch names.first {
    case "pages", "texts": true
    case let name? where names.count == 1: name.contains(".")
    default: false
    }
  }
}

extension HTTPRequest {
  /// Whether a person opens the root; clients of the API get its own answers there.
  var isOfBrowserAtRoot: Bool {
    (method == .get || method == .head) && target.pathSegments.isEmpty
      && headers["Authorization"] == nil && headers["Accept"]?.contains("text/html") == true
  }
}
