import Foundation

/// The effective configuration: every setting with its value and source, and the hubs that the file
/// describes. Created before any socket is opened.
struct Configuration: Sendable {
  /// The source of a value.
  enum Origin: Sendable, Equatable {
    case standard
    case file(String, line: Int)
    case variable(String)
    case flag(String)

    var description: String {
      switch self {
      case .standard: "default"
      case .file(let file, let line): "\(file):\(line)"
      case .variable(let name): name
      case .flag(let name): name
      }
    }
  }

  struct Entry: Sendable {
    let setting: Setting
    let values: [String]
    let origin: Origin
  }

  private(set) var entries: [String: Entry] = [:]
  private(set) var hubs: [HubConfiguration] = []
  /// The path of the file, if it contains keys of policies.
  private var keyFile: String?

  /// Reads the file (if any), then the service manager's credentials, then the environment, then
  /// the flags; later ones take precedence.
  ///
  /// - Parameters:
  ///   - file: The path of the file; `nil` reads `belfry.json` in the working directory if it
  ///     exists.
  ///   - flags: The flags by setting key.
  /// - Throws: ``ConfigurationError`` with key, file and line.
  init(
    file: String?, environment: [String: String], flags: [String: String] = [:]
  ) throws(ConfigurationError) {
    for setting in Setting.all {
      if let standard = setting.standard {
        entries[setting.key] = Entry(setting: setting, values: [standard], origin: .standard)
      }
    }
    if let path = file ?? environment["BELFRY_CONFIG"] {
      try read(path, environment)
    } else if FileManager.default.fileExists(atPath: "belfry.json") {
      try Self.refuseForeign("belfry.json", "--config")
      try read("belfry.json", environment)
    }
    try readCredentials(of: environment["CREDENTIALS_DIRECTORY"])
    for setting in Setting.all {
      if let text = environment[setting.variable] {
        try set(setting, text, origin: .variable(setting.variable))
      }
      if let text = flags[setting.key] { try set(setting, text, origin: .flag(setting.flag)) }
    }
    // A directory that this user cannot access is refused when it is opened.
    if let entry = entries[Setting.data.key], entry.origin == .standard,
      let path = entry.values.first, !DataDirectory(path: path).isClosed
    {
      try Self.refuseForeign(path, Setting.data.flag)
    }
  }

  /// Refuses a file that is used only because it is in the working directory, unless its owner is
  /// trusted: it names databases and the destinations of credentials.
  private static func refuseForeign(_ name: String, _ option: String) throws(ConfigurationError) {
    guard let fault = FileOwner.distrust("./" + name) else { return }
    throw ConfigurationError(
      "\(fault). It was found in this directory; pass \(option) \(name) to use it")
  }

  /// The files that contain secrets: those that settings name, and the configuration itself if it
  /// has any.
  var secretFiles: [String] {
    let named = [
      text(.operators), text(.tlsKey) ?? text(.tlsCertificate), text(.oidcSecretFile), keyFile,
    ]
    let holding = entries.values.compactMap { entry -> String? in
      guard case .file(let file, _) = entry.origin,
        entry.values.contains(where: { entry.setting.shown($0) != $0 })
      else { return nil }
      return file
    }
    return Set(named.compactMap(\.self) + holding).sorted()
  }

  private mutating func read(
    _ file: String, _ environment: [String: String]
  ) throws(ConfigurationError) {
    let text: String
    do {
      text = try String(contentsOfFile: file, encoding: .utf8)
    } catch {
      throw ConfigurationError("cannot be read: \(Self.reason(error))", file: file)
    }
    let root = try ConfigurationParser.parse(text, file: file)
    let reader = try ConfigurationReader(root, name: "the configuration", file: file)
    try reader.allow(Setting.all.map(\.key) + ["hubs"])
    guard case .object(let members) = root.value else { return }
    for member in members {
      guard let setting = Setting.all.first(where: { $0.key == member.name }) else { continue }
      let origin = Origin.file(file, line: member.line)
      switch (member.node.value, setting.kind) {
      case (.null, _): break
      case (.text(let text), .text), (.text(let text), .choice), (.text(let text), .time),
        (.number(let text), .integer):
        try set(setting, text, origin: origin)
      case (.flag(let isSet), .flag): try set(setting, "\(isSet)", origin: origin)
      case (.list, .list):
        entries[setting.key] = Entry(
          setting: setting, values: try reader.texts(setting.key), origin: origin)
      default:
        throw reader.fault(setting.key, "must be \(setting.wants), not \(member.node.kind)")
      }
    }
    for node in try reader.list("hubs") {
      let hub = try HubConfiguration(node, file: file, environment: environment)
      if hubs.contains(where: { $0.name.lowercased() == hub.name.lowercased() }) {
        throw ConfigurationError(
          "the hub '\(hub.name)' stands there twice (letter case does not count)", file: file,
          line: node.line)
      }
      if hub.policies.contains(where: { $0.primaryKey != nil || $0.secondaryKey != nil }) {
        keyFile = file
      }
      hubs.append(hub)
    }
    for setting in [
      Setting.data, .tlsCertificate, .tlsKey, .trust, .jobDirectory, .operators, .oidcSecretFile,
    ] {
      guard let entry = entries[setting.key], case .file = entry.origin else { continue }
      // A relative path in a file is relative to the file, not to the working directory of the
      // process that started the server.
      entries[setting.key] = Entry(
        setting: setting, values: entry.values.map(reader.located), origin: entry.origin)
    }
  }

  /// Reads settings from the credentials of a service manager (systemd's `LoadCredential=`), in
  /// which a file `belfry.KEY` is the setting KEY: for secrets that should not be in a file of the
  /// server's user.
  private mutating func readCredentials(of directory: String?) throws(ConfigurationError) {
    guard let directory else { return }
    for setting in Setting.all {
      let file = directory + "/belfry." + setting.key
      guard FileManager.default.fileExists(atPath: file) else { continue }
      let text: String
      do {
        text = try String(contentsOfFile: file, encoding: .utf8)
      } catch {
        throw ConfigurationError("cannot be read: \(Self.reason(error))", file: file)
      }
      try set(setting, text.trimmingCharacters(in: .newlines), origin: .file(file, line: 1))
    }
  }

  private mutating func set(_ setting: Setting, _ text: String, origin: Origin)
    throws(ConfigurationError)
  {
    var values = [text]
    switch setting.kind {
    case .text: break
    case .flag:
      guard ["true", "false"].contains(text) else {
        throw ConfigurationError(
          "\(origin.description): '\(setting.key)' must be \(setting.wants), not '\(text)'")
      }
    case .list: values = text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    case .choice(let words):
      guard words.contains(text) else {
        throw ConfigurationError(
          "\(origin.description): '\(setting.key)' must be \(setting.wants), not '\(text)'")
      }
    case .time(let range, let words):
      guard words.contains(text) || Reader<Int>.seconds(text, range) != nil else {
        throw ConfigurationError(
          "\(origin.description): '\(setting.key)' must be \(setting.wants), not '\(text)'")
      }
    case .integer(let range):
      guard let number = Int(text), range.contains(number) else {
        throw ConfigurationError(
          "\(origin.description): '\(setting.key)' must be \(setting.wants), not '\(text)'")
      }
    }
    entries[setting.key] = Entry(setting: setting, values: values, origin: origin)
  }

  /// An error for the value of a setting, with its source.
  func fault(_ setting: Setting, _ message: String) -> ConfigurationError {
    guard let entry = entries[setting.key] else { return ConfigurationError(message) }
    return switch entry.origin {
    case .file(let file, let line):
      ConfigurationError("'\(setting.key)': \(message)", file: file, line: line)
    case .standard, .variable, .flag:
      ConfigurationError("\(entry.origin.description): '\(setting.key)': \(message)")
    }
  }

  /// The name of a setting where a message has several: the option or variable that gives it, or
  /// its key and where that is.
  func name(of setting: Setting) -> String {
    guard let origin = entries[setting.key]?.origin else { return "'\(setting.key)'" }
    return switch origin {
    case .variable, .flag: origin.description
    case .file, .standard: "'\(setting.key)' (\(origin.description))"
    }
  }

  func text(_ setting: Setting) -> String? { entries[setting.key]?.values.first }
  func list(_ setting: Setting) -> [String] { entries[setting.key]?.values ?? [] }

  func flag(_ setting: Setting) -> Bool { text(setting) == "true" }

  /// The value as an integer, which was validated when it was read; every number has a default.
  func integer(_ setting: Setting) -> Int { text(setting).flatMap { Int($0) } ?? 0 }

  /// The system's message about a failed file operation.
  static func reason(_ error: any Error) -> String {
    let error = error as NSError
    // Cast by way of `Error`: on Linux the cause is not an `NSError` yet.
    let cause = (error.userInfo[NSUnderlyingErrorKey] as? any Error).map { $0 as NSError } ?? error
    if cause.domain == NSPOSIXErrorDomain, let code = Int32(exactly: cause.code) {
      return String(cString: strerror(code))
    }
    return cause.localizedDescription
  }
}

extension Setting {
  fileprivate var wants: String {
    switch kind {
    case .text: "a text"
    case .list: "a list of texts"
    case .flag: "true or false"
    case .choice(let words): words.joined(separator: " or ")
    case .time(let range, let words):
      (words + [Reader<Int>.times(range)]).joined(separator: " or ")
    case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
    }
  }
}
