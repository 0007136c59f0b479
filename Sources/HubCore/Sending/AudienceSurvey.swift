import Foundation
import NotificationHubs

/// Traverses an audience and records what a send would do for each device.
struct AudienceSurvey {
  private struct Cell: Hashable {
    let platform: PushPlatform
    /// The store's number of a template; 0 for a native payload.
    let template: Int64
  }

  private struct ProblemKey: Hashable {
    let cell: Cell
    let code: String
  }

  /// The findings about a cell.
  private struct Known {
    let form: Renderer.Form
    /// The problems of every device of the cell; `nil` when each must be rendered.
    var problems: [ProblemKey]?
    var samples = 0
    var devices = 0
  }

  private static let samplesPerTemplate = 2
  private static let sampleLimit = 20
  /// Maximum number of cached cells; beyond it the cache is cleared.
  private static let cellLimit = 10_000
  private static let problemLimit = 1_000
  /// Maximum number of names of properties; each template may use others.
  private static let propertyLimit = 1_000
  /// Maximum length of the excerpt of a template, in characters.
  private static let excerpt = 80

  private let renderer: Renderer
  /// The platforms with a credential.
  private let platforms: Set<PushPlatform>
  private(set) var examined = 0
  private var shares: [PushPlatform: SendPreview.Share] = [:]
  private var cells: [Cell: Known] = [:]
  private var problems: [ProblemKey: SendPreview.Problem] = [:]
  /// The devices of the cells that are no longer cached, by the properties that their templates use.
  private var properties: [String: Int] = [:]
  private var samples: [(RegistrationID?, PushPlatform, NotificationExplanation.Rendering)] = []

  init(_ request: NotificationRequest, platforms: Set<PushPlatform>) {
    self.platforms = platforms
    renderer = Renderer(request)
  }

  /// The registrations of the samples.
  var sampled: [RegistrationID] { samples.compactMap(\.0) }

  mutating func addDirect(_ platform: PushPlatform) {
    examined += 1
    shares[platform] = .init(platform: platform, devices: 1, duplicates: 0)
    look(nil, Cell(platform: platform, template: 0), template: nil, variables: [:])
  }

  mutating func add(_ page: TargetPage) {
    for target in page.targets {
      examined += 1
      let platform = target.platform
      shares[platform, default: .init(platform: platform, devices: 0, duplicates: 0)].devices += 1
      if target.isDuplicate {
        shares[platform]?.duplicates += 1
        continue
      }
      let stored = target.template >= 0 ? page.templates[Int(target.template)] : nil
      look(
        target.registration, Cell(platform: platform, template: stored?.id ?? 0),
        template: stored?.template,
        variables: target.variables >= 0 ? page.pushVariables[Int(target.variables)] : [:])
    }
  }

  private mutating func look(
    _ registration: RegistrationID?, _ cell: Cell, template: PushTemplate?,
    variables: [String: String]
  ) {
    if cells[cell] == nil {
      if cells.count >= Self.cellLimit {
        properties = usedProperties
        cells = [:]
      }
      cells[cell] = Known(form: renderer.form(of: template))
    }
    cells[cell]?.devices += 1
    guard let known = cells[cell] else { return }
    let isSample =
      known.samples < Self.samplesPerTemplate && samples.count < Self.sampleLimit
    if !isSample, let shared = known.problems {
      for key in shared { problems[key]?.devices += 1 }
      return
    }
    var found = wayProblem(cell)
    if case .broken(let reason) = known.form {
      found.append(
        note(cell, "broken-template", "the template cannot be used: \(reason)", template, true))
    } else if let (body, missing) = renderer.render(
      known.form, pushVariables: variables, platform: cell.platform)
    {
      let rendering = NotificationExplanation.Rendering(
        body, missing: missing, platform: cell.platform)
      found += renderingProblems(
        rendering, isTooLarge: body.isTooLarge(for: cell.platform), cell, template)
      if isSample {
        samples.append((registration, cell.platform, rendering))
        cells[cell]?.samples += 1
      }
    }
    for key in found { problems[key]?.devices += 1 }
    if known.form.isShared { cells[cell]?.problems = found }
  }

  private mutating func wayProblem(_ cell: Cell) -> [ProblemKey] {
    guard !platforms.contains(cell.platform) else { return [] }
    let name = cell.platform.rawValue
    return [
      note(
        Cell(platform: cell.platform, template: 0), "no-credential",
        "the hub has no \(name) credential", nil, true)
    ]
  }

  private mutating func renderingProblems(
    _ rendering: NotificationExplanation.Rendering, isTooLarge: Bool, _ cell: Cell,
    _ template: PushTemplate?
  ) -> [ProblemKey] {
    var found: [ProblemKey] = []
    if isTooLarge {
      found.append(
        note(
          cell, "too-large",
          "the payload is larger than the \(rendering.limit ?? 0) bytes that "
            + "\(cell.platform.rawValue) takes", template, true))
    }
    if !rendering.missing.isEmpty {
      let names = rendering.missing.prefix(10).joined(separator: ", ")
      found.append(
        note(
          cell, "missing-property", "neither message nor device has: \(names); left empty",
          template, false))
    }
    return found
  }

  /// Records a problem, without a device yet.
  private mutating func note(
    _ cell: Cell, _ code: String, _ text: String, _ template: PushTemplate?, _ isFatal: Bool
  ) -> ProblemKey {
    let key = ProblemKey(cell: cell, code: code)
    if problems[key] == nil, problems.count < Self.problemLimit {
      problems[key] = .init(
        platform: cell.platform, code: code, text: text, devices: 0,
        template: template.map { String($0.body.prefix(Self.excerpt)) }, isFatal: isFatal)
    }
    return key
  }

  /// The number of devices whose template uses a property, by its name.
  private var usedProperties: [String: Int] {
    var all = properties
    for known in cells.values {
      guard case .template(let compiled, _) = known.form else { continue }
      for name in compiled.propertyNames where all[name] != nil || all.count < Self.propertyLimit {
        all[name, default: 0] += known.devices
      }
    }
    return all
  }

  func preview(devices: Int, rate: Double?, names: [RegistrationID: String]) -> SendPreview {
    SendPreview(
      examined: examined, devices: devices,
      shares: shares.values.sorted { $0.platform.rawValue < $1.platform.rawValue },
      problems: problems.values.sorted {
        ($0.isFatal ? 0 : 1, -$0.devices, $0.code, $0.template ?? "")
          < ($1.isFatal ? 0 : 1, -$1.devices, $1.code, $1.template ?? "")
      },
      samples: samples.map { number, platform, rendering in
        .init(
          platform: platform, registrationID: number.flatMap { names[$0] }, rendering: rendering)
      },
      properties: usedProperties,
      estimatedSeconds: rate.map { Double(devices) / $0 }, devicesPerSecond: rate)
  }
}
