import HTTPServer

/// What a person sees who opens the hub's address in a browser.
extension HubAPI {
  /// - Returns: `nil` for what is no browser at the root: clients get the API's own answers.
  func frontPage(_ request: HTTPRequest) -> HTTPResponse? {
    guard request.method == .get || request.method == .head, request.target.pathSegments.isEmpty,
      request.headers["Authorization"] == nil,
      request.headers["Accept"]?.contains("text/html") == true
    else { return nil }
    return HTTPResponse(
      .ok,
      headers: [
        "Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
        "Cache-Control": "no-store",
      ], body: .bytes(Array(Self.frontPage.utf8)))
  }

  private static let frontPage = """
    <!doctype html>
    <html lang="en"><meta charset="utf-8"><title>Belfry</title>
    <style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; \
    padding: 0 1rem }</style>
    <h1>Belfry</h1>
    <p>This is a push notification hub. Its address is for programs: clients of Azure Notification \
    Hubs, the Swift SDK and the command line, each with a connection string.</p>
    <p>On the machine that it runs on, <code>belfry hub list</code> shows the hubs, \
    <code>belfry sas --connection-string</code> prints a connection string, and \
    <code>belfry --help</code> tells the rest. <a href="/$health">/$health</a> says whether it serves.</p>
    </html>

    """
}
