// Every text that can be seen in a notebook's markdown and outputs, with the contrast between its colour and its ground.
// Contrast is WCAG's ratio, 1 to 21. A ground is what lies behind a text: its ancestors' background colours, and inside an
// SVG also the filled shapes drawn before it at its middle. Not seen: pictures behind a text, and what another branch of the
// page lays under it. Text of a disabled control is left out, as WCAG does.
(panel) => {
    const PLACES = '.jp-RenderedMarkdown, .jp-OutputArea-output';
    const SHAPES = 'rect, circle, ellipse, polygon, path';
    const pen = Object.assign(document.createElement('canvas'), {width: 1, height: 1})
        .getContext('2d', {willReadFrequently: true});
    const known = new Map();

    function rgba(colour) {  // the browser's own reading of a colour, as shares of 1
        if (!known.has(colour)) {
            pen.clearRect(0, 0, 1, 1);
            pen.fillStyle = 'rgba(0, 0, 0, 0)';
            pen.fillStyle = colour;
            pen.fillRect(0, 0, 1, 1);
            known.set(colour, [...pen.getImageData(0, 0, 1, 1).data].map(part => part / 255));
        }
        return known.get(colour);
    }

    const faded = (colour, share) => [...colour.slice(0, 3), colour[3] * share];

    function over(front, back) {  // one colour painted over another
        const alpha = front[3] + back[3] * (1 - front[3]);
        if (!alpha) return [0, 0, 0, 0];
        const mixed = i => (front[i] * front[3] + back[i] * back[3] * (1 - front[3])) / alpha;
        return [mixed(0), mixed(1), mixed(2), alpha];
    }

    function luminance(colour) {
        const [r, g, b] = colour.map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    }

    function ratio(one, other) {
        const [dark, bright] = [luminance(one), luminance(other)].sort((a, b) => a - b);
        return (bright + 0.05) / (dark + 0.05);
    }

    const hex = colour => '#' + colour.slice(0, 3).map(c => Math.round(c * 255).toString(16).padStart(2, '0')).join('');

    function holds(shape, box) {  // does a shape cover the middle of a box?
        const matrix = shape.getScreenCTM();
        if (!matrix) return false;
        const middle = new DOMPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
        return shape.isPointInFill(middle.matrixTransform(matrix.inverse()));
    }

    function drawnBehind(element, box) {  // the colour of the shapes of the same drawing that lie behind a text
        let ground = [0, 0, 0, 0];
        for (const shape of element.ownerSVGElement.querySelectorAll(SHAPES)) {
            if (!(shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
            const style = getComputedStyle(shape);
            if (style.fill === 'none' || style.visibility !== 'visible' || !holds(shape, box)) continue;
            ground = over(faded(rgba(style.fill), style.fillOpacity * style.opacity), ground);
        }
        return ground;
    }

    function colours(element, box, part) {  // [the text's colour, its ground's], both as they arrive on the screen
        const style = getComputedStyle(element, part);
        const drawn = element instanceof SVGElement;
        let text = drawn ? faded(rgba(style.fill), style.fillOpacity) : rgba(style.color);
        let ground = [0, 0, 0, 0];
        if (drawn) {
            ground = drawnBehind(element, box);
            const halo = style.paintOrder.startsWith('stroke') && parseFloat(style.strokeWidth) >= 2;
            if (halo && style.stroke !== 'none') ground = over(rgba(style.stroke), ground);
            text = over(text, ground);
        }
        for (let at = element; at; at = at.parentElement) {
            const {backgroundColor, opacity} = getComputedStyle(at);
            const laid = rgba(backgroundColor);
            [text, ground] = [over(text, laid), over(ground, laid)].map(colour => faded(colour, Number(opacity)));
        }
        return [over(text, [1, 1, 1, 1]), over(ground, [1, 1, 1, 1])];
    }

    function measured(element, words, box, part = null) {
        const [text, ground] = colours(element, box, part);
        const place = element.closest('.jp-Notebook-cell');
        return {
            cell: [...panel.querySelectorAll('.jp-Notebook-cell')].indexOf(place) + 1,
            text: words.trim().replace(/\s+/g, ' ').slice(0, 60), ratio: ratio(text, ground),
            colour: hex(text), ground: hex(ground),
        };
    }

    const open = [...panel.querySelectorAll('details:not([open])')];  // answers that are folded
    const shown = document.createElement('style');
    shown.textContent = '.ll-box td .ll-tip {display: block !important}';  // notes that come with the pointer
    open.forEach(details => { details.open = true });
    document.head.append(shown);
    const found = [];
    for (const place of panel.querySelectorAll(PLACES)) {
        const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT), range = document.createRange();
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const element = node.parentElement;
            if (!node.data.trim() || !element.checkVisibility({visibilityProperty: true})) continue;
            if (element.closest('style, script, title, option, :disabled')) continue;
            range.selectNodeContents(node);
            const box = range.getBoundingClientRect();
            if (box.width && box.height) found.push(measured(element, node.data, box));
        }
        for (const field of place.querySelectorAll('input[type=text], input[type=number], select, textarea')) {
            const words = field.selectedOptions ? field.selectedOptions[0]?.text : field.value || field.placeholder;
            if (words && !field.disabled && field.checkVisibility()) {
                const part = field.selectedOptions || field.value ? null : '::placeholder';
                found.push(measured(field, words, field.getBoundingClientRect(), part));
            }
        }
    }
    shown.remove();
    open.forEach(details => { details.open = false });
    return found;
}
