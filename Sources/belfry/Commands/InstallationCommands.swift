import Foundation
import HubCore
import NotificationHubs

struct InstallationSetCommand: ResultCommand {
  static let about = CommandHelp(
    "installation set", "create or replace an installation",
    examples: [
      "belfry installation set --handle 62BC… --tags 12345 \\",
      "    --template 'main={\"aps\":{\"alert\":\"$(message)\"}}'",
      "belfry installation set phone.json",
    ])

  @Argument("FILE", "the installation as JSON: a file, - for standard input, or the text")
  var file: String?
  let client = ClientOptions()
  @Option("--id", "ID", "the installation's id (default: the JSON's, or a new UUID)")
  var id: String?
  @Option("--platform", "WORD", "apns, fcmv1, wns …", .platform) var platform = PushPlatform.apns
  @Option("--handle", "TEXT", "what the push service calls the device: its token or channel")
  var handle: String?
  @Option("--tags", "A,B", "tags, separated by commas", .tags) var tags: [Tag]?
  @Option("--user", "ID", "the signed-in user") var user: String?
  @Option(
    repeated: "--template", "NAME=BODY",
    "a template, such as 'main={\"aps\":{\"alert\":\"$(message)\"}}'", .pair)
  var templates: [(name: String, value: String)]

  func result(in context: CommandContext) async throws -> CommandResult {
    let installation = try installation()
    return try await client.withHub(.changes, in: context) { access in
      try await access.client.createOrReplace(installation)
      return CommandResult(
        ["installationId": installation.installationID],
        ["installation \(installation.installationID) is in hub \(access.hub)"])
    }
  }

  private func installation() throws -> Installation {
    if let file {
      var installation = try TextInput.decoded(file, "the installation") {
        data throws(WireFormatError) in try Installation(jsonData: data)
      }
      if let id { installation.installationID = id }
      return installation
    }
    guard let handle else {
      throw UsageError("give the installation as JSON, or with --handle and its other options")
    }
    return Installation(
      installationID: id ?? UUID().uuidString.lowercased(), userID: user, platform: platform,
      pushChannel: .handle(handle), tags: tags ?? [], templates: templates.templates)
  }
}

extension [(name: String, value: String)] {
  /// The values by name; the last of equal names applies.
  var dictionary: [String: String] {
    Dictionary(map { ($0.name, $0.value) }) { $1 }
  }

  var templates: [String: PushTemplate] { dictionary.mapValues { PushTemplate(body: $0) } }
}

struct InstallationShowCommand: ResultCommand {
  static let about = CommandHelp(
    "installation show", "show an installation",
    examples: ["belfry installation show 3f1c6c0e --data belfry-data"])

  @Argument("ID", "the installation's id") var id: String
  let client = ClientOptions()

  func result(in context: CommandContext) async throws -> CommandResult {
    let installation = try await client.withHub(in: context) {
      try await $0.client.installation(id)
    }
    return CommandResult(
      written: installation.hubJSON, ShownInstallation(installation).lines)
  }
}

struct InstallationUpdateCommand: ResultCommand {
  static let about = CommandHelp(
    "installation update", "change parts of an installation: all of them or none",
    examples: [
      "belfry installation update 3f1c6c0e --add-tag news --user ann",
      "belfry installation update 3f1c6c0e '[{\"op\":\"add\",\"path\":\"/tags\",\"value\":\"news\"}]'",
    ])

  @Argument("ID", "the installation's id") var id: String
  @Argument("FILE", "the operations as JSON: a file, - for standard input, or the text")
  var file: String?
  let client = ClientOptions()
  @Option(repeated: "--add-tag", "TAG", "add a tag", .tag) var newTags: [Tag]
  @Option(repeated: "--remove-tag", "TAG", "remove a tag", .tag) var oldTags: [Tag]
  @Option("--user", "ID", "set the signed-in user; an empty text removes it") var user: String?
  @Option("--handle", "TEXT", "set the push channel") var handle: String?
  @Option(repeated: "--template", "NAME=BODY", "set a template", .pair)
  var newTemplates: [(name: String, value: String)]
  @Option(repeated: "--remove-template", "NAME", "remove a template") var oldTemplates: [String]

  func result(in context: CommandContext) async throws -> CommandResult {
    let patch = try patch()
    guard !patch.operations.isEmpty else { throw UsageError("nothing to change was given") }
    try await client.withHub(.changes, in: context) {
      try await $0.client.patch(installation: id, patch)
    }
    return CommandResult(["installationId": id], ["changed installation \(id)"])
  }

  private func patch() throws -> InstallationPatch {
    var operations =
      try file.map { file in
        try TextInput.decoded(file, "the list of operations") { data throws(WireFormatError) in
          try InstallationPatch(jsonData: data)
        }.operations
      } ?? []
    operations += newTags.map { .addTag($0) }
    operations += oldTags.map { .removeTag($0) }
    if let user { operations.append(.setUserID(user.isEmpty ? nil : user)) }
    if let handle { operations.append(.setPushChannel(.handle(handle))) }
    operations += newTemplates.map { .setTemplate($0.name, PushTemplate(body: $0.value)) }
    operations += oldTemplates.map { .removeTemplate($0) }
    return InstallationPatch(operations)
  }
}

struct InstallationDeleteCommand: ResultCommand {
  static let about = CommandHelp(
    "installation delete", "delete an installation and what was derived from it",
    examples: ["belfry installation delete 3f1c6c0e"])

  @Argument("ID", "the installation's id") var id: String
  let client = ClientOptions()

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(.changes, in: context) {
      try await $0.client.delete(installation: id)
    }
    return CommandResult(["deleted": id], ["installation \(id) is gone"])
  }
}

struct InstallationListCommand: ResultCommand {
  static let about = CommandHelp(
    "installation list", "list a hub's installations",
    examples: [
      "belfry installation list --hub news --limit 20",
      "belfry installation list --search 7f0c",
      "belfry installation list --user ann --connection 'Endpoint=sb://…' --hub news",
    ])

  let client = ClientOptions(belfryOnly: "Manage", directoryAccess: .inProcess)
  @Option("--tag", "TAG", "only those with this tag, their own or a template's", .tag)
  var tag: Tag?
  @Option("--user", "ID", "only those of this user") var user: String?
  @Option("--search", "TEXT", "only those with this in id, user or a tag") var search: String?
  @Option("--platform", "WORD", "only those of this platform: apns, fcmv1, wns …", .platform)
  var platform: PushPlatform?
  @Option(
    "--expired", "true|false", "only those that nothing reaches any more, or the others",
    Reader(words: ["true", "false"]) { text, name throws(UsageError) in
      guard let expired = Bool(text) else { throw UsageError("\(name) must be true or false") }
      return expired
    }) var isExpired: Bool?
  @Option("--limit", "N", "at most so many", .integer(1...100_000)) var limit = 100
  @Option("--after", "PLACE", "go on where a list has ended", .integer(1...Int.max))
  var after: Int?

  func result(in context: CommandContext) async throws -> CommandResult {
    var query = InstallationQuery(tag: tag, user: user, search: search)
    query.platform = platform
    query.expired = isExpired
    return try await client.withHub(in: context) { access in
      var found: [Installation] = []
      var next = after.map { ContinuationToken.encode(Array(String($0).utf8)) }
      repeat {
        query.pageSize = min(100, limit - found.count)
        let page = try await access.client.installations(query).page(after: next)
        found += page.elements
        next = page.continuation
      } while next != nil && found.count < limit
      let more = next.flatMap(ContinuationToken.decode).map {
        "; there are more: raise --limit, or go on with --after "
          + String(decoding: $0, as: UTF8.self)
      }
      return CommandResult(
        written: InstallationList.json(found),
        found.map { ShownInstallation($0).line }
          + [found.count.counted("installation") + " in hub \(access.hub)" + (more ?? "")])
    }
  }
}

extension PagedList {
  /// Returns the first elements, up to a count; one more than needed shows whether there are more.
  func first(_ count: Int) async throws -> [Element] {
    var found: [Element] = []
    for try await element in self {
      found.append(element)
      if found.count == count { break }
    }
    return found
  }
}

extension PushChannel {
  /// The abbreviated handle for display, since anyone who has the whole can push to the device.
  var shownHandle: String {
    handle.count > 16 ? "\(handle.prefix(8))…\(handle.suffix(4))" : handle
  }
}

/// An installation as printed for people.
struct ShownInstallation {
  private let installation: Installation
  init(_ installation: Installation) { self.installation = installation }

  private var handle: String { installation.pushChannel.shownHandle }

  private var tags: String { installation.tags.map(\.rawValue).joined(separator: ", ") }

  var line: String {
    [
      installation.installationID.padded(to: 36), installation.platform.rawValue.padded(to: 7),
      handle, installation.pushChannelExpired ? "expired" : "", tags,
    ].filter { !$0.isEmpty }.joined(separator: "  ")
  }

  var lines: [String] {
    var rows = [
      ("installation", installation.installationID), ("platform", installation.platform.rawValue),
      ("handle", handle + (installation.pushChannelExpired ? " (expired)" : "")),
    ]
    if let user = installation.userID { rows.append(("user", user)) }
    if !installation.tags.isEmpty { rows.append(("tags", tags)) }
    for (name, value) in installation.pushVariables.sorted(by: { $0.key < $1.key }) {
      rows.append(("variable", "\(name) = \(value)"))
    }
    for (name, template) in installation.templates.sorted(by: { $0.key < $1.key }) {
      rows.append(("template", "\(name): \(template.body)"))
    }
    return rows.map { $0.0.padded(to: 14) + $0.1 }
  }
}
