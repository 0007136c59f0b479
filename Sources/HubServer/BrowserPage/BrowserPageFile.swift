import HTTPServer

/// A file of the page, as the compiler put it into the program.
struct BrowserPageFile: Sendable {
  /// In the page's folder; empty for the page itself.
  let name: String
  let type: String
  let bytes: [UInt8]

  static let index = Self(
    name: "", type: "text/html; charset=utf-8", bytes: PackageResources.index_html)

  /// Those that the page names.
  static let all = [
    Self(name: "style.css", type: "text/css; charset=utf-8", bytes: PackageResources.style_css),
    Self(name: "icon.svg", type: "image/svg+xml", bytes: PackageResources.icon_svg),
    script("hub.js", PackageResources.hub_js), script("page.js", PackageResources.page_js),
    script("local.js", PackageResources.local_js),
    script("webpush.js", PackageResources.webpush_js),
    script("worker.js", PackageResources.worker_js),
  ]

  private static func script(_ name: String, _ bytes: [UInt8]) -> Self {
    Self(name: name, type: "text/javascript; charset=utf-8", bytes: bytes)
  }

  /// Asked for again each time: after an update of Belfry page and worker must fit.
  var response: HTTPResponse {
    HTTPResponse(
      .ok, headers: ["Content-Type": type, "Cache-Control": "no-cache"], body: .bytes(bytes))
  }
}
