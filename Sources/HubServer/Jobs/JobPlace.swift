import Foundation

/// A place that a job may use, found from a URI that a client has named.
enum JobPlace: Hashable, Sendable {
  case remote(URL)
  /// An absolute path inside the directory that the operator has named, links resolved.
  case file(String)
}

extension JobConfiguration {
  /// The file that an import reads.
  /// - Throws: ``JobFault`` for a place that the operator has not allowed.
  func input(_ uri: String) throws(JobFault) -> JobPlace {
    let parts = try Self.parts(uri, member: "ImportFileUri")
    guard parts.scheme == "file" else { return .remote(try remote(parts, path: nil)) }
    return .file(try file(parts, path: nil))
  }

  /// A file of results in the container that a job names.
  /// - Parameter path: Below the container; segments need no encoding.
  /// - Throws: ``JobFault`` for a place that the operator has not allowed.
  func output(_ uri: String, path: String) throws(JobFault) -> JobPlace {
    let parts = try Self.parts(uri, member: "OutputContainerUri")
    guard parts.scheme == "file" else { return .remote(try remote(parts, path: path)) }
    return .file(try file(parts, path: path))
  }

  private static func parts(
    _ uri: String, member: String
  ) throws(JobFault) -> (scheme: String, components: URLComponents) {
    guard let components = URLComponents(string: uri), let scheme = components.scheme?.lowercased()
    else { throw JobFault("\(member) is not a URI") }
    guard ["http", "https", "file"].contains(scheme) else {
      throw JobFault("\(member) has the scheme '\(scheme)'; use https, http or file")
    }
    return (scheme, components)
  }

  private func remote(
    _ parts: (scheme: String, components: URLComponents), path: String?
  ) throws(JobFault) -> URL {
    var components = parts.components
    components.fragment = nil
    guard let host = components.host?.lowercased(), !host.isEmpty, components.user == nil,
      components.password == nil
    else { throw JobFault("a URI of the job has no host, or names a user") }
    let port = components.port ?? (parts.scheme == "https" ? 443 : 80)
    guard allowedHosts.contains(where: { Self.pattern($0, allows: host, port: port) }) else {
      throw JobFault(
        "jobs may not use the host '\(host)'; the operator of this hub can allow it with the "
          + "setting jobHosts")
    }
    if let path {
      var base = components.percentEncodedPath
      while base.last == "/" { base.removeLast() }
      components.percentEncodedPath = base + "/" + path
    }
    guard let url = components.url else { throw JobFault("a URI of the job cannot be read") }
    return url
  }

  /// Whether `host`, `host:port`, `[v6]:port` or `*.suffix` (with or without port) fits.
  private static func pattern(_ pattern: String, allows host: String, port: Int) -> Bool {
    var name = pattern.lowercased()[...]
    if let colon = name.lastIndex(of: ":"), let number = Int(name[name.index(after: colon)...]),
      name.hasPrefix("[") || name.firstIndex(of: ":") == colon
    {
      guard number == port else { return false }
      name = name[..<colon]
    }
    let bare = host.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
    if name.hasPrefix("*.") { return bare.hasSuffix(name.dropFirst()) }
    return !name.isEmpty && bare == name.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
  }

  private func file(
    _ parts: (scheme: String, components: URLComponents), path: String?
  ) throws(JobFault) -> String {
    guard let directory else {
      throw JobFault(
        "jobs may not use files of the server; its operator can name a directory with the setting "
          + "jobDirectory")
    }
    let outside = JobFault("a file: URI of the job lies outside the directory for jobs")
    guard ["", "localhost"].contains(parts.components.host ?? "") else { throw outside }
    let root = directory.resolvingSymlinksInPath().standardizedFileURL.path
    var named = parts.components.path
    if let path { named += "/" + path }
    // A name that steps up has no business here, whatever it would come out at.
    guard named.hasPrefix("/"), !named.split(separator: "/").contains(".."),
      !named.utf8.contains(0)
    else { throw outside }
    var target = URL(fileURLWithPath: named).standardizedFileURL
    // What is not there yet cannot be a link; the nearest thing that is there decides.
    var missing: [String] = []
    while !FileManager.default.fileExists(atPath: target.path), target.path != "/" {
      // A link to nowhere does not exist to FileManager, and would be written through.
      if (try? FileManager.default.destinationOfSymbolicLink(atPath: target.path)) != nil {
        throw outside
      }
      missing.append(target.lastPathComponent)
      target.deleteLastPathComponent()
    }
    target = target.resolvingSymlinksInPath().standardizedFileURL
    for name in missing.reversed() { target.append(path: name) }
    guard target.path.hasPrefix(root == "/" ? root : root + "/") else { throw outside }
    return target.path
  }
}
